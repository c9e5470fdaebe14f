//! Tenures on the real store: promotion, ticks, work, requests, halts, and the end of it all. Leadership is played by the
//! tests: they give the orders, own the gate and the coordinator's memory, and take the reports.

mod demotion;
mod gate;
mod ground;
mod halts;
mod outside;
mod promotion;
mod ticks;
mod units;
