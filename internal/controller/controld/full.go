package controld

import "time"

// fullEvery is how often one thing that is full is told of: who finds no room comes again and again.
const fullEvery = time.Minute

// full tells that a limit of the network is reached, in words that say what to do.
func (n *network) full(subject string, err error) {
	if last, told := n.fullTold[subject]; told && time.Since(last) < fullEvery {
		return
	}
	n.fullTold[subject] = time.Now()
	n.events.Tell("network.full", subject, err.Error())
}
