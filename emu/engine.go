package emu

// A Config is what an engine emulates.
type Config struct {
	Links   []LinkConfig `json:"links"`
	Workers int          `json:"workers,omitempty"` // threads; 0: one less than there are CPUs, at least one
}

// A LinkConfig is one link. Params[0] hold from Ends[0] to Ends[1], Params[1] back.
type LinkConfig struct {
	Ends   [2]End    `json:"ends"`
	Params [2]Params `json:"params"`
}

// An End is one interface that the engine makes. It goes when the engine ends.
type End struct {
	Netns string `json:"netns"` // path of the network namespace; "" for the engine's own
	Dev   string `json:"dev"`   // name of the interface there
	MTU   int    `json:"mtu"`
}
