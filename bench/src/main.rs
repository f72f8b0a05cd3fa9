//! The program `tamis-bench`: see the library of this package.

fn main() -> std::process::ExitCode {
    tamis_bench::main()
}
