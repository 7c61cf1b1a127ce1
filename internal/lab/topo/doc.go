// Package topo holds graphs of networks: nodes with names and places, links with lengths, delays and
// rates. It reads what others drew (GraphML and GML as in the Internet Topology Zoo, networkx's
// node-link JSON, CAIDA's AS relationships), generates what nobody drew, and says how a graph is
// shaped. It knows nothing of labs and touches no file: text comes in, a graph or an error goes out.
package topo
