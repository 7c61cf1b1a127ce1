// Package locators decides which of a router's locators a host may have: what is in use, what was left and is kept for whom,
// from what a host may still send, and what is certified. Where hosts are it is told, or asks.
package locators
