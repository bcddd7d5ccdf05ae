//! Whole sessions: a test is the web server, and the origin does what a script says.

mod faithful;
mod faults;
mod play;
