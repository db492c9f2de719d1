//! The machine that was measured.

use maud::{Markup, html};

use crate::host::machine::Conditions;
use crate::record::Record;
use crate::report::columns;

const GIBIBYTE: f64 = (1_u64 << 30) as f64;

pub(super) fn section(record: &Record) -> Markup {
    let machine = &record.machine;
    let memory = format!("{:.1} GiB", machine.memory_bytes as f64 / GIBIBYTE);
    let kind = if machine.virtual_machine {
        "a virtual machine"
    } else {
        "bare metal"
    };
    let facts = [
        (
            "Processor",
            format!("{}, {}, {kind}", machine.processor, machine.cores()),
        ),
        ("Instructions", machine.instructions.join(" ")),
        ("Memory", memory),
        ("Kernel", machine.kernel_build.clone()),
        ("System", machine.system.clone()),
        ("Before", conditions(&record.before)),
        ("After", conditions(&record.after)),
    ];
    html! {
        section #machine {
            h2 { "The machine" }
            dl.facts { @for (name, fact) in &facts { dt { (name) } dd { (fact) } } }
            h3 { "The kernel’s implementations of AES" }
            @if machine.drivers.is_empty() { p.empty { "/proc/crypto lists none." } }
            @else {
                div.scroll {
                    table {
                        (columns(&["algorithm", "driver", "kind", "priority"]))
                        tbody {
                            @for driver in &machine.drivers {
                                tr {
                                    th scope="row" { (driver.algorithm) }
                                    td.words { (driver.driver) }
                                    td.words { (driver.kind) }
                                    td { (driver.priority) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn conditions(conditions: &Conditions) -> String {
    let load = conditions.load.iter().map(|load| format!("{load:.2}"));
    let load: Vec<String> = load.collect();
    let mhz = conditions.frequencies_mhz.iter().map(|f| format!("{f:.0}"));
    let mhz: Vec<String> = mhz.collect();
    let governor = conditions.governor.as_deref().unwrap_or("not told");
    format!(
        "load {}; {} MHz; governor {governor}",
        load.join(" "),
        mhz.join(" ")
    )
}
