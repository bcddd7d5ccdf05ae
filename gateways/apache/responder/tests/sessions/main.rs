//! Complete sessions between a test as the web server and a scripted origin.

mod faithful;
mod faults;
mod play;
