// Package boost is the tests of boost end to end: a controller, agents on two routers between unmodified programs, and what
// becomes of connections while either goes away. What an agent alone does is tested with it (internal/boost/boostd), what a
// controller decides with that (internal/controller/controld/boost).
package boost
