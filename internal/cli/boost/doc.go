// Package boost is `scaffold boost`: which TCP connections agents carry over long paths, at which sites, and how the agents
// fare.
package boost
