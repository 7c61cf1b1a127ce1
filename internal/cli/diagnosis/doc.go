// Package diagnosis is what is wrong, with a network or a machine: `scaffold status`, `doctor` and `support`.
package diagnosis
