// Package services holds the services of a network: their names, policies, who may serve and connect, and what operators say
// of single hosts that serve. It checks what is ordered of them and says what that comes to; what follows from a change it
// tells the plan, the lists of those who may connect, and the hosts that serve.
package services
