// Package boost measures agents of boost in labs beside what hosts do without them: single connections and many, relays,
// Multipath TCP. With the same rig it runs the experiments of the thesis about Steroid OpenFlow Service again (files sos_*).
package boost
