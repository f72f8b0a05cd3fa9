//! the Python at hand -> the flags that say which version the module is for.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
