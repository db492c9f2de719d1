//! What of the published findings does not go together, and what is known of why.

use maud::{Markup, html};

use crate::report::columns;

/// The findings, and what stands against them.
const CONTRADICTIONS: [(&str, &str); 6] = [
    (
        "A says that user space is the better place: its kernel module is 6 to 21 % slower than \
         the same code in a program (2007).",
        "A’s follow-up says otherwise: in a kernel that was configured anew the module is faster \
         than the program, 51 against 47 MB/s (Celeron) and 90 against 86 (Xeon). What was found \
         first was the kernel’s configuration, not the place.",
    ),
    (
        "A says: the kernel is slower. B says: the kernel is 27 % faster.",
        "They measure different things. A’s loop calculates, and moves nothing. B’s files move, \
         and what it saves are copies and crossings between kernel and program. Neither finding \
         carries over to the other’s work.",
    ),
    (
        "The follow-up tells the Xeon’s program as 86 MB/s and the stock module as 68.",
        "In 2007 they were 89 and 70, of a Xeon of 3.0 GHz. It may be another machine; 3 % lie \
         between two runs of what should be the same, as much as some of what was found.",
    ),
    (
        "The follow-up’s first table: 47 and 44 MB/s on three distributions and three kernels.",
        "The distribution makes no difference, the kernel’s options do: all three had much the \
         same ones.",
    ),
    (
        "A’s server reaches 72 MB/s with a thread for each request, its Xeon 160 MB/s in four \
         processes of openssl speed.",
        "What is missing is not encryption: the server also receives and stores. Without any it \
         moves 213 MB/s.",
    ),
    (
        "C recommends the kernel’s API, since keys stay out of the program’s memory.",
        "Its figures speak against it: 343 MiB/s where the same instructions give a program \
         gigabytes. Linux has since deprecated the API for programs.",
    ),
];

pub(super) fn section() -> Markup {
    html! {
        section #contradictions {
            h2 { "What contradicts what" }
            p {
                "Published findings that don’t go together, and why. What this machine says to "
                "them stands below the plots."
            }
            div.scroll {
                table {
                    (columns(&["published", "but"]))
                    tbody {
                        @for (finding, but) in CONTRADICTIONS {
                            tr { th.words scope="row" { (finding) } td.words { (but) } }
                        }
                    }
                }
            }
        }
    }
}
