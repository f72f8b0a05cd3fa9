//! a deny list, sites by popularity -> a filter that hardly ever stops a popular site.
//!
//! A browser asks for every host it visits. Hosts that are not on the deny list and pass the filter cost a question to a server, and
//! most visits go to few sites. So the popular ones are the queries to expect: the planner decides which of them the filter
//! shall know, and what it costs.
//!
//! ```text
//! cargo run --release -p tamis --example deny_list -- DENY RANKED     one host per line; RANKED has the most popular first
//! ```
//!
//! Without names it takes the lists of the repository. Their order says nothing about popularity; it stands in for it.

use std::collections::HashSet;
use std::error::Error;
use std::fs;

const DENY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/quickstart/deny.txt");
const RANKED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/quickstart/allow.txt");

fn main() -> Result<(), Box<dyn Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let [deny, ranked] = match &names[..] {
        [] => [DENY, RANKED],
        [deny, ranked] => [deny.as_str(), ranked.as_str()],
        _ => return Err("expected two files: hosts to deny, and popular hosts".into()),
    };
    let read = |name: &str| fs::read_to_string(name).map_err(|e| format!("{name}: {e}"));
    let (deny, ranked) = (read(deny)?, read(ranked)?);
    let denied: Vec<&str> = deny.lines().filter(|line| !line.is_empty()).collect();
    // Zipf's law: the site of rank r is visited one r-th as often as the first.
    let visits =
        || ranked.lines().filter(|line| !line.is_empty()).zip(1..).map(|(site, rank)| (site, 1e6 / f64::from(rank)));

    let hosts: HashSet<&str> = denied.iter().copied().collect();
    for bits in [6.0, 8.0, 10.0] {
        // One visit in five goes to a site that is on neither list.
        let build = tamis::build(denied.iter().copied()).workload(visits()).unlisted_share(0.2).bits_per_key(bits);
        let plan =
            tamis::build(denied.iter().copied()).workload(visits()).unlisted_share(0.2).bits_per_key(bits).plan()?;
        let filter = build.finish()?;
        let passes = |filter: &tamis::Filter| -> Result<f64, tamis::Error> {
            let (mut passing, mut all) = (0.0, 0.0);
            for (site, weight) in visits().filter(|(site, _)| !hosts.contains(site)) {
                all += weight;
                passing += if filter.contains(site)? { weight } else { 0.0 };
            }
            Ok(passing / all)
        };
        // The same number of bits for a filter that is told nothing.
        let plain = tamis::build(denied.iter().copied()).bits_per_key(bits).finish()?;
        println!("{bits} bits per key");
        println!(
            "  popular sites stopped: {:.5} % of visits; a plain filter {:.5} %",
            100.0 * passes(&filter)?,
            100.0 * passes(&plain)?
        );
        println!("  other sites stopped:   {:.5} %; a plain filter {:.5} %", 100.0 * filter.fpr(), 100.0 * plain.fpr());
        plan.reasons.iter().for_each(|reason| println!("  {reason}"));
    }
    Ok(())
}
