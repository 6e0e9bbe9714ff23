// SPDX-License-Identifier: GPL-2.0-or-later
//! Rust: mangled names with crate and module, closures and generic functions.
//!
//! usage: rust [CPU-SECONDS]
//!
//! Time is wall-clock time here (the standard library has no CPU clock): run it on an idle CPU or
//! compare shares only.

use std::time::{Duration, Instant};

/// std::hint::black_box() is stable from Rust 1.66 on only.
#[inline(always)]
fn black_box(x: u64) -> u64 {
    // Safe: the pointer is that of a live integer.
    unsafe { std::ptr::read_volatile(&x) }
}

mod work {
    use super::black_box;

    #[inline(never)]
    pub fn heavy(n: u64) -> u64 {
        let mut x = 1u64;
        for i in 0..n {
            x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(i));
        }
        x
    }

    #[inline(never)]
    pub fn light(n: u64) -> u64 {
        let mut x = 3u64;
        for i in 0..n {
            x = black_box(x.wrapping_mul(2862933555777941757).wrapping_add(i));
        }
        x
    }
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(2.0);
    let start = Instant::now();
    let (mut heavy, mut light) = (Duration::ZERO, Duration::ZERO);
    let mut seed = 88172645463325252u64;

    while start.elapsed().as_secs_f64() < seconds {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let n = 60000 + seed % 300000;
        let t = Instant::now();
        black_box(work::heavy(3 * n));
        heavy += t.elapsed();
        let t = Instant::now();
        black_box(work::light(n));
        light += t.elapsed();
    }
    println!("truth rust::work::heavy {:.6}", heavy.as_secs_f64());
    println!("truth rust::work::light {:.6}", light.as_secs_f64());
}
