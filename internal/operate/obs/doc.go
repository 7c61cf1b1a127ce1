// Package obs is how Scaffold's daemons let themselves be observed: structured logs, metrics, health
// and profiles.
//
// Nothing here is global: a daemon makes one Metrics and one Health, passes them down, and serves
// them with Handler. It is the only importer of Prometheus.
package obs
