//! Which lists name this host? Several block lists in one index: built, asked, and changed when a new list comes.
//!
//!     cargo run --release -p tamis --example block_lists

use tamis::sets::{Editor, Kind};

/// Three lists, cut from the hosts of the quick start by what their names contain.
fn lists(hosts: &str) -> impl Iterator<Item = (&str, &'static str)> {
    let named =
        |host: &str| [("shops", host.contains("shop")), ("numbers", host.contains(|c: char| c.is_ascii_digit()))];
    hosts.lines().flat_map(move |host| {
        let some = named(host).into_iter().filter(|(_, named)| *named).map(move |(list, _)| (host, list));
        some.chain([(host, "all")])
    })
}

fn main() -> Result<(), tamis::Error> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/quickstart/deny.txt");
    let hosts = std::fs::read_to_string(path)?;
    // Frozen: the smallest, and exact for every host that is listed.
    let frozen = tamis::sets(lists(&hosts)).finish()?;
    // A sketch: larger, and takes another list at any time.
    let room = 2 * frozen.pairs();
    let sketch = tamis::sets(lists(&hosts)).kind(Kind::Cuckoo).capacity(room).finish()?;
    for (what, index) in [("frozen", &frozen), ("sketch", &sketch)] {
        let bits = 8.0 * index.as_bytes().len() as f64 / index.pairs() as f64;
        println!(
            "{what}: {} lists, {} hosts, {bits:.1} bits for each of {} pairs",
            index.sets(),
            index.keys(),
            index.pairs()
        );
    }
    let mut editor = Editor::new(&sketch)?;
    let short = editor.add_set("short")?;
    for host in hosts.lines().filter(|host| host.len() < 9) {
        editor.insert(host, short)?;
    }
    editor.remove_set("numbers")?;
    let index = tamis::Sets::open(editor.snapshot()?)?;
    for host in hosts.lines().filter(|host| host.len() < 9 && host.contains(|c: char| c.is_ascii_digit())).take(3) {
        let names = |index: &tamis::Sets| -> Result<String, tamis::QueryError> {
            let names: Vec<&str> = index.find(host)?.into_iter().filter_map(|id| index.name(id)).collect();
            Ok(names.join(", "))
        };
        println!("{host}: {}; after the change {}", names(&frozen)?, names(&index)?);
    }
    // How much of a page's hosts a list names.
    let page = ["wikipedia.org", "example.com"];
    println!("a clean page: {:?}", frozen.tally(&page)?.at_least(0.5));
    Ok(())
}
