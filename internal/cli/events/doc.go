// Package events is `scaffold events`: what happened in a network, who ordered what, and why.
package events
