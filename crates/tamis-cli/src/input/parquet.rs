//! parquet -> one column, a batch of rows at a time.
//!
//! The table of contents at the end of the file names the row groups; in each, the one column is read page by page through the
//! column reader, so that memory holds a page, a dictionary and a batch. Arrow's readers would bring a dozen crates to build whole
//! arrays from the same pages.
//!
//! | column                                        | keys                                        |
//! |-----------------------------------------------|---------------------------------------------|
//! | text, enum, JSON, BSON, binary, fixed, UUID   | the bytes                                   |
//! | integers of 8 to 64 bits, signed and unsigned | integers                                    |
//! | null                                          | none, counted as blank                      |
//! | dates, times, decimals, floats, booleans      | an error: equal values have several forms   |
//! | lists, maps, structs                          | an error: a row may have any number of them |
//!
//! A column of second values is read with it, as many rows at a time.
//!
//! The crate believes what a file says of itself, and panics at some damage. So what it would take memory for is compared with the limit
//! before ([`pages`]), and its panics are errors like others.

mod pages;

use std::cell::Cell as Flag;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use ::parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::{ByteArray, DataType, FixedLenByteArray};
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::FileReader;
use ::parquet::file::serialized_reader::SerializedFileReader;
use ::parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};
use anyhow::{Result, bail};

use super::SecondColumn;
use super::lines::LIMIT;
use super::sink::{Sink, list_columns};
use super::source::Source;
use crate::cmd::grouped;

/// Rows decoded at a time.
const BATCH: usize = 4096;

/// The first and the last four bytes of a file.
const SIGNATURE: &[u8; 4] = b"PAR1";

/// The last four bytes of an encrypted one.
const ENCRYPTED: &[u8; 4] = b"PARE";

/// The chosen column of every row.
pub(super) fn read(source: &Source, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
    let mut file = source.open_file()?;
    let size = file.metadata().map_err(|e| sink.error(e))?.len();
    check_ends(&mut file, size).map_err(|message| sink.error(message))?;
    let again = file.try_clone().map_err(|e| sink.error(e))?;
    let reader = guard(|| SerializedFileReader::new(file)).map_err(|e| sink.error(e))?;
    let metadata = reader.metadata();
    let schema = metadata.file_metadata().schema_descr();
    let (leaf, signed) = choose(schema, sink.options().column.as_deref(), sink)?;
    let labels = match &sink.options().second_column {
        Some(name) => Some(choose(schema, Some(name), sink)?),
        None => None,
    };
    let total =
        metadata.row_groups().iter().fold(0, |sum: u64, group| sum.saturating_add(group.num_rows().max(0) as u64));

    let meter = sink.meter();
    let memory = sink.options().memory();
    let mut rows =
        Rows { nullable: false, row: 0, batch: BATCH, total, size, base: meter.bytes.get(), labels: None, sink };
    for i in 0..reader.num_row_groups() {
        let group = guard(|| reader.get_row_group(i)).map_err(|e| rows.error(e))?;
        let expected = rows.row.saturating_add(group.metadata().num_rows().max(0) as u64);
        rows.batch = BATCH;
        let open = |leaf: usize, rows: &mut Rows<'_, '_>| {
            let chunk = group.metadata().column(leaf);
            let offset = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
            if offset < 0 || chunk.compressed_size() < 0 {
                bail!(rows.error("the file is damaged: the next row group has a negative offset or size"));
            }
            rows.batch = pages::check(&again, chunk, memory, rows.batch).map_err(|message| rows.error(message))?;
            let column = guard(|| group.get_column_reader(leaf)).map_err(|e| rows.error(e))?;
            Ok((column, chunk.column_descr().max_def_level() > 0))
        };
        let (column, nullable) = open(leaf, &mut rows)?;
        rows.nullable = nullable;
        if let Some((leaf, signed)) = labels {
            let (column, nullable) = open(leaf, &mut rows)?;
            rows.labels = Some(Labels { column, signed, nullable });
        }
        let flow = match column {
            ColumnReader::Int32ColumnReader(column) if signed => rows.drain(column, |rows, &v| rows.signed(v.into())),
            ColumnReader::Int64ColumnReader(column) if signed => rows.drain(column, |rows, &v| rows.signed(v)),
            // Unsigned integers are stored as the signed ones with the same bits.
            ColumnReader::Int32ColumnReader(column) => rows.drain(column, |rows, &v| rows.unsigned((v as u32).into())),
            ColumnReader::Int64ColumnReader(column) => rows.drain(column, |rows, &v| rows.unsigned(v as u64)),
            ColumnReader::ByteArrayColumnReader(column) => {
                rows.drain(column, |rows, v: &ByteArray| rows.text(v.data()))
            }
            ColumnReader::FixedLenByteArrayColumnReader(column) => {
                rows.drain(column, |rows, v: &FixedLenByteArray| rows.text(v.data()))
            }
            _ => bail!(rows.error("the column has another type than the schema says")),
        }?;
        if flow.is_break() {
            return Ok(flow);
        }
        if rows.row != expected {
            bail!(rows.error(format_args!("the row group ends too early; expected rows up to {expected}")));
        }
    }
    meter.bytes.set(rows.base + size);
    Ok(ControlFlow::Continue(()))
}

/// The column's number among the leaves, and whether its integers are signed.
fn choose(schema: &SchemaDescriptor, name: Option<&str>, sink: &Sink<'_>) -> Result<(usize, bool)> {
    let fields = schema.root_schema().get_fields();
    let names = || list_columns(fields.iter().map(|field| field.name().into()));
    let field = match name {
        Some(name) => fields.iter().find(|field| field.name() == name),
        None if fields.len() == 1 => fields.first(),
        None => bail!(sink.error(format_args!(
            "has {} columns ({}); expected one; choose with {} NAME",
            fields.len(),
            names(),
            sink.options().column_option()
        ))),
    };
    let Some(field) = field else {
        let name = name.unwrap_or_default();
        bail!(sink.error(format_args!("no column {name:?}; expected one of {}", names())));
    };
    let info = field.get_basic_info();
    let repeated = info.has_repetition() && info.repetition() == Repetition::REPEATED;
    let leaf = schema.columns().iter().position(|leaf| leaf.path().parts() == [field.name()]);
    let Some(leaf) = leaf.filter(|_| field.is_primitive() && !repeated) else {
        bail!(sink.error(format_args!("the column {:?} is nested; expected one value per row", field.name())));
    };
    match signedness(&schema.column(leaf)) {
        Some(signed) => Ok((leaf, signed)),
        None => {
            let descriptor = schema.column(leaf);
            let physical = descriptor.physical_type();
            let logical = match (descriptor.logical_type_ref(), descriptor.converted_type()) {
                (Some(logical), _) => format!(" ({logical:?})"),
                (None, ConvertedType::NONE) => String::new(),
                (None, converted) => format!(" ({converted})"),
            };
            bail!(sink.error(format_args!(
                "the column {:?} is {physical}{logical}; expected text, binary or integers",
                field.name()
            )))
        }
    }
}

/// Whether the column's integers are signed (anything for bytes); `None` for types that are no keys.
fn signedness(column: &ColumnDescriptor) -> Option<bool> {
    use ConvertedType as C;
    use LogicalType as L;
    match (column.physical_type(), column.logical_type_ref(), column.converted_type()) {
        (Physical::INT32 | Physical::INT64, Some(L::Integer(integer)), _) => Some(integer.is_signed),
        (Physical::INT32 | Physical::INT64, None, converted) => match converted {
            C::NONE | C::INT_8 | C::INT_16 | C::INT_32 | C::INT_64 => Some(true),
            C::UINT_8 | C::UINT_16 | C::UINT_32 | C::UINT_64 => Some(false),
            _ => None,
        },
        (Physical::BYTE_ARRAY, None | Some(L::String | L::Enum | L::Json | L::Bson), converted) => {
            matches!(converted, C::NONE | C::UTF8 | C::ENUM | C::JSON | C::BSON).then_some(false)
        }
        (Physical::FIXED_LEN_BYTE_ARRAY, None | Some(L::Uuid), C::NONE) => Some(false),
        _ => None,
    }
}

/// The rows of a file on their way to the sink.
struct Rows<'a, 'b> {
    nullable: bool,
    /// The current row, from 1.
    row: u64,
    /// Rows decoded at a time.
    batch: usize,
    total: u64,
    size: u64,
    base: u64,
    labels: Option<Labels>,
    sink: &'a mut Sink<'b>,
}

/// The second values of one row group.
struct Labels {
    column: ColumnReader,
    signed: bool,
    nullable: bool,
}

impl Labels {
    /// The second values of the next rows; fewer only at the end.
    fn next(&mut self, rows: usize) -> Result<Vec<Cell>, String> {
        let (signed, nullable) = (self.signed, self.nullable);
        match &mut self.column {
            ColumnReader::Int32ColumnReader(column) if signed => {
                take(column, nullable, rows, |&v| Cell::signed(v.into()))
            }
            ColumnReader::Int64ColumnReader(column) if signed => take(column, nullable, rows, |&v| Cell::signed(v)),
            ColumnReader::Int32ColumnReader(column) => {
                take(column, nullable, rows, |&v| Cell::Number((v as u32).into()))
            }
            ColumnReader::Int64ColumnReader(column) => take(column, nullable, rows, |&v| Cell::Number(v as u64)),
            ColumnReader::ByteArrayColumnReader(column) => {
                take(column, nullable, rows, |v: &ByteArray| Cell::Text(v.clone()))
            }
            ColumnReader::FixedLenByteArrayColumnReader(column) => {
                take(column, nullable, rows, |v: &FixedLenByteArray| Cell::Text(ByteArray::from(v.clone())))
            }
            _ => Err("the second column has another type than the schema says".into()),
        }
    }
}

/// One second value.
enum Cell {
    Null,
    Text(ByteArray),
    Number(u64),
    /// No key, but a second value like any other.
    Negative(i64),
}

impl Cell {
    fn signed(value: i64) -> Cell {
        u64::try_from(value).map_or(Cell::Negative(value), Cell::Number)
    }
}

/// The values of the next rows.
fn take<T: DataType>(
    column: &mut ColumnReaderImpl<T>,
    nullable: bool,
    rows: usize,
    cell: impl Fn(&T::T) -> Cell,
) -> Result<Vec<Cell>, String> {
    let (mut levels, mut values): (Vec<i16>, Vec<T::T>) = (Vec::new(), Vec::new());
    let mut found = 0;
    while found < rows {
        let more = guard(|| column.read_records(rows - found, Some(&mut levels), None, &mut values));
        let (records, _, _) = more?;
        if records == 0 {
            break;
        }
        found += records;
    }
    let mut values = values.iter();
    let null = |i: usize| nullable && levels.get(i) != Some(&1);
    Ok((0..found).map(|i| if null(i) { Cell::Null } else { values.next().map_or(Cell::Null, &cell) }).collect())
}

impl Rows<'_, '_> {
    /// All values of one row group.
    fn drain<T: DataType>(
        &mut self,
        mut column: ColumnReaderImpl<T>,
        mut emit: impl FnMut(&mut Self, &T::T) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let (mut levels, mut values): (Vec<i16>, Vec<T::T>) = (Vec::new(), Vec::new());
        loop {
            levels.clear();
            values.clear();
            let batch = guard(|| column.read_records(self.batch, Some(&mut levels), None, &mut values));
            let (records, _, _) = batch.map_err(|e| self.error(e))?;
            if records == 0 {
                return Ok(ControlFlow::Continue(()));
            }
            // Only a column of several is read, so bytes would not reach the file's size: the rows' share stands for them.
            let share = u128::from(self.size) * u128::from(self.row) / u128::from(self.total.max(1));
            self.sink.meter().bytes.set(self.base + u64::try_from(share).unwrap_or(self.size).min(self.size));
            let labels = match &mut self.labels {
                Some(labels) => labels.next(records),
                None => Ok(vec![]),
            };
            let labels = labels.map_err(|e| self.error(e))?;
            if self.labels.is_some() && labels.len() < records {
                bail!(self.error(format_args!("fewer {}s than rows", self.sink.options().second_column_words().0)));
            }
            let mut values = values.iter();
            for i in 0..records {
                self.row += 1;
                match labels.get(i) {
                    None => {}
                    Some(Cell::Null) => self.sink.no_second(),
                    Some(Cell::Text(text)) => {
                        self.check_length(text.data())?;
                        self.sink.second(text.data());
                    }
                    Some(&Cell::Number(number)) => self.sink.second_number(number),
                    Some(Cell::Negative(value)) if self.sink.options().second_holds == SecondColumn::Value => {
                        bail!(self.sink.error_at(self.row, format_args!("the value is {value}, expected 0 or more")))
                    }
                    Some(Cell::Negative(value)) => self.sink.second(value.to_string().as_bytes()),
                }
                if self.nullable && levels.get(i) != Some(&1) {
                    self.sink.blank(1);
                    continue;
                }
                let Some(value) = values.next() else { bail!(self.error("fewer values than rows")) };
                if emit(self, value)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
    }

    fn text(&mut self, value: &[u8]) -> Result<ControlFlow<()>> {
        self.check_length(value)?;
        self.sink.text(self.row, value)
    }

    /// Values have the limit of lines.
    fn check_length(&self, value: &[u8]) -> Result<()> {
        if value.len() > LIMIT {
            bail!(self.sink.error_at(self.row, format_args!("too long; expected at most {LIMIT} bytes for a value")));
        }
        Ok(())
    }

    fn signed(&mut self, value: i64) -> Result<ControlFlow<()>> {
        self.sink.integer(self.row, value.into())
    }

    fn unsigned(&mut self, value: u64) -> Result<ControlFlow<()>> {
        self.sink.integer(self.row, value.into())
    }

    /// An error behind the rows already read.
    fn error(&self, message: impl std::fmt::Display) -> anyhow::Error {
        self.sink.error(format_args!("after row {}: {message}", self.row))
    }
}

/// Whether the ends of a file are those of a whole one; an error says what is wrong with it.
fn check_ends(file: &mut File, size: u64) -> Result<(), String> {
    const EXPECTED: &str = "expected a whole Parquet file";
    let failed = |error: std::io::Error| error.to_string();
    let mut first = Vec::new();
    (&mut *file).take(4).read_to_end(&mut first).map_err(failed)?;
    if first != SIGNATURE && first != ENCRYPTED {
        return Err("does not begin with PAR1; expected a parquet file (not compressed as a whole)".into());
    }
    if size < 12 {
        return Err(format!("is too short, {size} bytes; {EXPECTED}"));
    }
    let mut last = [0; 8];
    file.seek(SeekFrom::End(-8)).and_then(|_| file.read_exact(&mut last)).map_err(failed)?;
    let [a, b, c, d, signature @ ..] = last;
    match &signature {
        SIGNATURE => {}
        ENCRYPTED => return Err("is encrypted; expected a plain Parquet file".into()),
        _ => return Err(format!("does not end with PAR1; {EXPECTED}; was it cut?")),
    }
    let contents = u64::from(u32::from_le_bytes([a, b, c, d]));
    if contents > size - 12 {
        let (contents, size) = (grouped(contents), grouped(size));
        return Err(format!("its table of contents would have {contents} bytes, and all of it has {size}; {EXPECTED}"));
    }
    Ok(())
}

thread_local! {
    /// Whether a panic of this thread is about to be an error.
    static GUARDED: Flag<bool> = const { Flag::new(false) };
}

/// What the crate says of a file, on one line. It meets some damage with a panic: no word of that is printed.
fn guard<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let other = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                other(info);
            }
        }));
    });
    GUARDED.set(true);
    let read = catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(false);
    match read {
        Ok(read) => read.map_err(|error| format!("the file is damaged ({})", error.to_string().replace('\n', " "))),
        Err(_) => Err("the file is damaged".into()),
    }
}
