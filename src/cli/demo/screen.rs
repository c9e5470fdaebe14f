//! What a person sees while the story goes on.
//!
//! On a terminal: a line that is drawn again in place, with a bar, and colours unless `NO_COLOR` is set. Anywhere else: a
//! plain line for each event and nothing drawn twice, so that it can be read in a log. Each line says how long the demo runs.

use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use super::sight::Progress;
use crate::clock;
use crate::domain::Moment;

/// The bar's width, in cells.
const BAR: u64 = 16;
/// The width of a terminal that does not say how wide it is.
const USUAL_WIDTH: usize = 80;
/// Lines begin with the time in so many cells, and two blanks.
const TIME: usize = 8;

const PLAIN: &str = "\x1b[0m";
const BOLD: &str = "\x1b[1m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const CLEAR: &str = "\r\x1b[2K";

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// Something that happened.
    Plain,
    /// Something that was done to a replica.
    Act,
    /// Something that came out as it should.
    Good,
}

/// Where lines go, and in which form.
pub(super) struct Screen {
    out: Box<dyn Write + Send>,
    live: bool,
    colours: bool,
    width: usize,
    started: Moment,
    drawn: String,
}

impl Screen {
    /// Standard output, or standard error where the answer itself is JSON.
    pub(super) fn new(json: bool) -> Self {
        let (terminal, out): (bool, Box<dyn Write + Send>) = if json {
            (io::stderr().is_terminal(), Box::new(io::stderr()))
        } else {
            (io::stdout().is_terminal(), Box::new(io::stdout()))
        };
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let live = terminal && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        Self::on(out, live, live && !set("NO_COLOR"), told.unwrap_or(USUAL_WIDTH))
    }

    fn on(out: Box<dyn Write + Send>, live: bool, colours: bool, width: usize) -> Self {
        Self { out, live, colours, width, started: clock::boottime(), drawn: String::new() }
    }

    /// Since the demo's start.
    pub(super) fn elapsed(&self) -> Duration {
        clock::boottime().since(self.started)
    }

    /// A scene begins.
    pub(super) fn scene(&mut self, number: usize, of: usize, title: &str) -> io::Result<()> {
        let title = format!("[{number}/{of}] {title}");
        let title = if self.colours { format!("{BOLD}{title}{PLAIN}") } else { title };
        self.put(&format!("\n{title}\n"))
    }

    /// One line.
    pub(super) fn say(&mut self, tone: Tone, text: &str) -> io::Result<()> {
        let colour = match tone {
            Tone::Plain => "",
            Tone::Act => YELLOW,
            Tone::Good => GREEN,
        };
        let time = format!("{:>5.1} s  ", self.elapsed().as_secs_f64());
        let line = if self.colours && !colour.is_empty() {
            format!("{time}{colour}{text}{PLAIN}\n")
        } else {
            format!("{time}{text}\n")
        };
        self.put(&line)
    }

    /// The line in place, on a terminal.
    pub(super) fn progress(&mut self, leader: &str, progress: Progress) -> io::Result<()> {
        if !self.live {
            return Ok(());
        }
        let line = progress_line(leader, progress, self.width);
        if line == self.drawn {
            return Ok(());
        }
        write!(self.out, "{CLEAR}{line}")?;
        self.drawn = line;
        self.out.flush()
    }

    /// Nothing is left in place.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        self.put("")
    }

    fn put(&mut self, text: &str) -> io::Result<()> {
        if !self.drawn.is_empty() {
            self.drawn.clear();
            write!(self.out, "{CLEAR}")?;
        }
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Screen").field("live", &self.live).field("colours", &self.colours).finish_non_exhaustive()
    }
}

/// Runs and units, with a bar for what is open; cut to one line of the terminal.
fn progress_line(leader: &str, progress: Progress, width: usize) -> String {
    let bar = match progress.open {
        Some((ended, total)) => {
            let full = (ended * BAR).checked_div(total).unwrap_or(0).min(BAR);
            let cells = |n: u64, cell: &str| cell.repeat(usize::try_from(n).unwrap_or(0));
            format!("[{}{}] {ended}/{total}", cells(full, "#"), cells(BAR - full, "."))
        }
        None => format!("[{}] no run is open", ".".repeat(usize::try_from(BAR).unwrap_or(0))),
    };
    let line = format!("{}{leader:<14} {bar}  runs {}  units {}", " ".repeat(TIME), progress.runs, progress.units);
    line.chars().take(width.saturating_sub(1)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("nobody panics").extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn shown(live: bool, colours: bool) -> String {
        let paper = Paper::default();
        let mut screen = Screen::on(Box::new(paper.clone()), live, colours, 60);
        screen.scene(1, 2, "a scene").expect("written");
        screen.progress("demo-1 leads", Progress { runs: 1, units: 8, open: Some((5, 10)) }).expect("written");
        screen.say(Tone::Good, "done").expect("written");
        screen.settle().expect("written");
        let bytes = paper.0.lock().expect("nobody panics").clone();
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn without_a_terminal_nothing_is_drawn_twice_and_no_line_has_a_colour() {
        let text = shown(false, false);
        assert!(!text.contains('\x1b') && !text.contains('\r'), "{text:?}");
        assert!(text.contains("[1/2] a scene\n") && text.contains(" s  done\n"), "{text:?}");
    }

    #[test]
    fn without_colours_a_terminal_is_only_drawn_on() {
        let text = shown(true, false);
        assert!(text.contains("[########........] 5/10"), "{text:?}");
        assert_eq!(text.replace(CLEAR, "").find('\x1b'), None, "{text:?}");
        assert!(shown(true, true).contains(GREEN));
    }

    #[test]
    fn the_line_in_place_fits_the_terminal() {
        for width in [20, 40, 80] {
            let line = progress_line("demo-1 leads", Progress { runs: 9, units: 99_999, open: Some((1, 3)) }, width);
            assert!(line.chars().count() < width, "{line}");
        }
        assert!(progress_line("nobody leads", Progress::default(), 200).contains("no run is open"));
        let none_yet = Progress { open: Some((0, 0)), ..Progress::default() };
        assert!(progress_line("a", none_yet, 200).contains("0/0"));
    }
}
