//! package names with their downloads -> a filter for a mirror, planned for what will really be asked.
//!
//! A company mirrors some packages. Every installation asks the mirror first, and a name that is not mirrored but passes its filter
//! costs a look at the disk. Which names will be asked for is no secret: the registry publishes how often each is downloaded. The law is
//! very skewed, so a filter that knows the popular names that are not mirrored errs on nearly nothing.
//!
//! ```text
//! zstdcat npm-downloads.tsv.zst | cargo run --release -p tamis --example npm_names     lines of name<TAB>downloads
//! ```

use std::error::Error;
use std::io::{self, BufRead};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut mirrored, mut others) = (vec![], vec![]);
    for (line, number) in io::stdin().lock().lines().zip(1u64..) {
        let line = line?;
        let (name, downloads) = line.split_once('\t').ok_or(format!("line {number}: expected name<TAB>downloads"))?;
        let downloads: f64 = downloads.parse().map_err(|e| format!("line {number}: {downloads:?}: {e}"))?;
        // Every tenth package is mirrored.
        match number % 10 {
            0 => mirrored.push(name.to_string()),
            _ => others.push((name.to_string(), downloads)),
        }
    }
    if mirrored.is_empty() {
        return Err("expected lines of name<TAB>downloads on standard input".into());
    }
    println!("{} names are mirrored, {} are not", mirrored.len(), others.len());
    println!(
        "{:>4}  {:<14} {:>9} {:>12} {:>12} {:>12}",
        "bits", "structure", "known", "downloads", "unknown", "plain ribbon"
    );
    for bits in [4.0, 6.0, 8.0, 10.0, 12.0] {
        // Half of the names are known when the filter is built: those with the most downloads.
        let known = || others[..others.len() / 2].iter().map(|(name, downloads)| (name, *downloads));
        let build = || tamis::build(&mirrored).bits_per_key(bits);
        let plan = build().workload(known()).plan()?;
        let filter = build().workload(known()).finish()?;
        let plain = build().finish()?;
        // Of all downloads, known and unknown, those that pass.
        let passing = |filter: &tamis::Filter| -> Result<f64, tamis::Error> {
            let mut sums = [0.0; 2];
            for (name, downloads) in &others {
                sums[usize::from(filter.contains(name)?)] += downloads;
            }
            Ok(sums[1] / (sums[0] + sums[1]))
        };
        let chosen = plan.chosen().and_then(|chosen| Some((chosen.name, chosen.prediction.as_ref().ok()?)));
        let (name, known) = chosen.map_or(("-", 0), |(name, forecast)| (name, forecast.covered));
        let (here, there) = (passing(&filter)?, passing(&plain)?);
        println!("{bits:>4}  {name:<14} {known:>9} {here:>12.2e} {:>12.2e} {there:>12.2e}", filter.fpr());
    }
    Ok(())
}
