// Package demo is the main job shown: a lab with three unmodified web servers behind one name, under
// continuous load by unmodified clients, through everything that makes a load balancer, a registry and
// health checks necessary today.
package demo
