// Package gateway is `scaffold gateway`, and what is asked of one that runs.
package gateway
