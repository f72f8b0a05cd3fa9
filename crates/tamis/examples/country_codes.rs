//! a table of networks -> a few bits for each: a compressed map, with and without a way to recognise strangers.
//!
//! Most networks of a table belong to few countries, so the country of a network takes little more than the entropy of the
//! countries. Here the table is made up: 300,000 networks of 200 countries by Zipf's law.
//!
//! Run it with `cargo run --release -p tamis --example country_codes`.

use tamis::Error;
use tamis::maps::Kind;

fn main() -> Result<(), Error> {
    let networks = (0..300_000u32).map(|i| i.wrapping_mul(0x9e37_79b9)).map(|address| format!("{address:08x}/24"));
    let table: Vec<(String, String)> = networks.enumerate().map(|(i, network)| (network, country(i as u64))).collect();
    for (name, kind, checked) in [
        ("compressed", Kind::Compressed, true),
        ("compressed, unchecked", Kind::Compressed, false),
        ("ribbon, unchecked", Kind::Ribbon, false),
        ("fuse, unchecked", Kind::Fuse, false),
    ] {
        let map = tamis::map(table.iter().map(|(network, country)| (network, country))).kind(kind);
        let map = if checked { map } else { map.unchecked() }.finish()?;
        assert!(table.iter().all(|(network, country)| map.get_bytes(network) == Ok(Some(country.as_bytes()))));
        let bits = |bytes: f64| bytes * 8.0 / map.len() as f64;
        let entropy = map.entropy().unwrap_or(0) as f64 / 8.0;
        println!(
            "{name:<24} {:.3} bits per network, the entropy is {:.3}; at most {:.1} % of strangers get a country",
            bits(map.as_bytes().len() as f64),
            bits(entropy),
            100.0 * map.fpr(),
        );
    }
    Ok(())
}

/// The country of a network: number k with a probability of about 1 / k.
fn country(i: u64) -> String {
    let x = (i.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 11) as f64 / (1u64 << 53) as f64;
    let rank = 200f64.powf(x) as u8;
    [b'a' + rank % 26, b'a' + rank / 26].map(char::from).iter().collect()
}
