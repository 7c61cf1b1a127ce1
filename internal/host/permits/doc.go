// Package permits keeps what a host may serve of services that have a key: permits that were presented or that an operator
// put into a directory, and services' own keys, with which a host makes its permits itself.
package permits
