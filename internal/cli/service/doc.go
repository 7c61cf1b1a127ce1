// Package service is `scaffold service`, and services as files: `scaffold apply`, `diff` and `export`. A change of one is
// sent with the version that was read, so of two operators nobody overwrites what he has not seen.
package service
