// Package greeting asks a host's links for routers and hears their HELLOs (docs/protocol.md §5.1). Which of them the host
// follows, others decide.
package greeting
