// Package tcp brings the daemon of a host together with its kernel's TCP, and that of its guests: connections are kicked,
// read and reset beside the loop, and silent ones are found. It knows connections by their two ends, and nothing of
// services, locators or why somebody asks.
package tcp
