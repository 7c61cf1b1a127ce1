// Package frr prepares unmodified FRR routing daemons for the network namespaces of routers ([Prepare]) and follows
// the routes that they compute: by zebra's forwarding plane feed ([Listen]), or by the namespace's kernel table
// ([Watch]), which works with any daemon and with static routes.
//
// docs/frr.md says what is started how and what of the feed is understood.
package frr
