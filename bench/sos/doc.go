// Package sos has what came of the thesis' experiments when they were run again, and the page that tells it beside the
// thesis' own numbers: "Steroid OpenFlow Service Scalability Analysis" (Clemson, December 2018). It measures nothing.
package sos
