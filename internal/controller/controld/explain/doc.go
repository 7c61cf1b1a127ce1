// Package explain says of services what people want to know: their instances, why new flows go where they go, who is refused
// and why, and which services nobody serves who should. It changes nothing.
package explain
