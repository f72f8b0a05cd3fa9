//! JSON lines -> one field of each object, or bare values.
//!
//! A line is parsed once and only one field is kept; text without escapes is not even copied. A field that
//! a line lacks is a null. That a file lacks it altogether is known at its end, and is an error.

use std::borrow::Cow;
use std::fmt;
use std::io::Read;
use std::ops::ControlFlow;

use anyhow::{Result, bail};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Number;
use super::lines::Lines;
use super::sink::{Sink, list_columns};

/// The key of every line.
pub(super) fn read(reader: Box<dyn Read + '_>, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
    let mut lines = Lines::new(reader, b'\n');
    let mut shape = match &sink.options().column {
        Some(name) => Shape::Objects(name.clone()),
        None => Shape::Unknown,
    };
    let labels = sink.options().second_column.as_deref();
    // Whether the columns were met, and the fields of the first object in case one never is.
    let (mut met, mut met_label, mut fields) = (false, labels.is_none(), None);
    while let Some((number, line)) = lines.next().map_err(|(line, e)| sink.error_at(line, e))? {
        sink.row(line);
        let line = line.trim_ascii();
        if line.is_empty() {
            sink.blank(1);
            continue;
        }
        let is_object = line.first() == Some(&b'{');
        if let Shape::Unknown = shape {
            shape = if is_object {
                let mut names = names(line).map_err(|e| sink.error_at(number, syntax(&e)))?;
                if names.len() > 1 {
                    bail!(sink.error_at(number, several(&names, sink)));
                }
                // An object without fields decides nothing.
                names.pop().map_or(Shape::Unknown, Shape::Only)
            } else {
                Shape::Bare
            };
        }
        let value = match (&shape, is_object) {
            (Shape::Unknown, _) => Value::Null,
            (Shape::Bare, false) => parse(line, ValueSeed).map_err(|e| sink.error_at(number, syntax(&e)))?,
            (Shape::Bare, true) => {
                bail!(sink.error_at(number, "found an object; expected a bare value as before"))
            }
            (Shape::Objects(name) | Shape::Only(name), true) => {
                let row =
                    parse(line, RowSeed { key: name, label: labels }).map_err(|e| sink.error_at(number, syntax(&e)))?;
                if row.others && matches!(shape, Shape::Only(_)) {
                    let mut names = names(line).map_err(|e| sink.error_at(number, syntax(&e)))?;
                    if !names.contains(name) {
                        names.insert(0, name.clone());
                    }
                    bail!(sink.error_at(number, several(&names, sink)));
                }
                met |= row.value.is_some();
                met_label |= row.label.is_some();
                if !(met && met_label) && fields.is_none() {
                    fields = Some(names(line).map_err(|e| sink.error_at(number, syntax(&e)))?);
                }
                match row.label.unwrap_or(Value::Null) {
                    Value::Null => sink.no_second(),
                    Value::Text(text) => sink.second(text.as_bytes()),
                    Value::Integer(value) => sink.second_number(value),
                    other @ (Value::Negative(_) | Value::Other(_)) => {
                        let what = if let Value::Other(what) = other { what } else { "a negative number" };
                        let (label, _) = sink.options().second_column_words();
                        bail!(sink.error_at(number, format_args!("the {label} is {what}; expected text or an integer")))
                    }
                }
                row.value.unwrap_or(Value::Null)
            }
            (Shape::Objects(name) | Shape::Only(name), false) => {
                bail!(sink.error_at(number, format_args!("expected an object with the field {name:?}")))
            }
        };
        let flow =
            match value {
                Value::Null => {
                    sink.blank(1);
                    ControlFlow::Continue(())
                }
                Value::Text(text) => sink.text(number, text.as_bytes())?,
                Value::Integer(value) => sink.integer(number, value.into())?,
                Value::Negative(value) => sink.integer(number, value.into())?,
                Value::Other(what) => {
                    bail!(sink.error_at(
                        number,
                        format_args!("found {what}; expected text or an integer from {}", Number::RANGE)
                    ))
                }
            };
        if flow.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    let missing = match (&shape, labels) {
        (Shape::Objects(name), _) if !met => Some(name.as_str()),
        (_, Some(name)) if !met_label => Some(name),
        _ => None,
    };
    if let (Some(name), Some(fields)) = (missing, fields) {
        let list = list_columns(fields.iter().map(|name| name.as_str().into()));
        bail!(sink.error(format_args!("no object has the field {name:?}; expected one of {list}")))
    }
    Ok(ControlFlow::Continue(()))
}

/// What the lines of a file look like.
enum Shape {
    /// Nothing decided it yet.
    Unknown,
    /// Text and numbers without a name.
    Bare,
    /// Objects with this field and perhaps others.
    Objects(String),
    /// Objects with this field alone: no column was named.
    Only(String),
}

fn several(names: &[String], sink: &Sink<'_>) -> String {
    let list = list_columns(names.iter().map(|name| name.as_str().into()));
    let option = sink.options().column_option();
    format!("found {} fields ({list}); expected one; choose with {option} NAME", names.len())
}

/// serde_json counts lines too, but it sees only one.
fn syntax(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or_default();
    format!("expected a JSON value: {what} at column {}", error.column())
}

fn parse<'de, S: DeserializeSeed<'de>>(line: &'de [u8], seed: S) -> serde_json::Result<S::Value> {
    let mut parser = serde_json::Deserializer::from_slice(line);
    let value = seed.deserialize(&mut parser)?;
    parser.end()?;
    Ok(value)
}

/// The distinct names of an object's fields, in order.
fn names(line: &[u8]) -> serde_json::Result<Vec<String>> {
    parse(line, NamesSeed)
}

/// One JSON value, as far as it matters here.
enum Value<'de> {
    Null,
    Text(Cow<'de, str>),
    Integer(u64),
    Negative(i64),
    Other(&'static str),
}

struct ValueSeed;

impl<'de> DeserializeSeed<'de> for ValueSeed {
    type Value = Value<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or an integer")
    }

    fn visit_unit<E>(self) -> Result<Value<'de>, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value<'de>, E> {
        Ok(Value::Other("true or false"))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value<'de>, E> {
        Ok(Value::Integer(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value<'de>, E> {
        Ok(Value::Negative(value))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value<'de>, E> {
        Ok(Value::Other("a fraction or a number beyond 64 bits"))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value<'de>, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other("an array"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value<'de>, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other("an object"))
    }
}

/// One object and the values of the fields that matter.
struct Row<'de> {
    value: Option<Value<'de>>,
    label: Option<Value<'de>>,
    others: bool,
}

/// The names of the fields. A field that stands twice has its last value, as in most readers of JSON.
struct RowSeed<'n> {
    key: &'n str,
    label: Option<&'n str>,
}

/// Which field a name means.
enum Field {
    Key,
    Label,
    Other,
}

impl<'de> DeserializeSeed<'de> for RowSeed<'_> {
    type Value = Row<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Row<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowSeed<'_> {
    type Value = Row<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Row<'de>, A::Error> {
        let mut row = Row { value: None, label: None, others: false };
        while let Some(field) = fields.next_key_seed(NameSeed(&self))? {
            match field {
                Field::Key => row.value = Some(fields.next_value_seed(ValueSeed)?),
                Field::Label => row.label = Some(fields.next_value_seed(ValueSeed)?),
                Field::Other => {
                    row.others = true;
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(row)
    }
}

/// Whether a name is one of these, without a copy.
struct NameSeed<'n>(&'n RowSeed<'n>);

impl<'de> DeserializeSeed<'de> for NameSeed<'_> {
    type Value = Field;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Field, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameSeed<'_> {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Field, E> {
        Ok(match name {
            name if name == self.0.key => Field::Key,
            name if Some(name) == self.0.label => Field::Label,
            _ => Field::Other,
        })
    }
}

struct NamesSeed;

impl<'de> DeserializeSeed<'de> for NamesSeed {
    type Value = Vec<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<String>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for NamesSeed {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Vec<String>, A::Error> {
        // A line of a gigabyte could hold a hundred million names, and the search below is quadratic.
        const MAX_FIELDS: usize = 10_000;
        let mut names: Vec<String> = Vec::new();
        while let Some((name, _)) = fields.next_entry::<String, IgnoredAny>()? {
            if !names.contains(&name) {
                names.push(name);
            }
            if names.len() > MAX_FIELDS {
                return Err(A::Error::custom("more than 10000 fields"));
            }
        }
        Ok(names)
    }
}
