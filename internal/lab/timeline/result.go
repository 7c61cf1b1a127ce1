package timeline

import "scaffold.dev/scaffold/emu/fidelity"

// A Result is what a run of a lab gave.
type Result struct {
	Name     string          `json:"name"`
	Steps    []StepResult    `json:"steps"`
	Measures []MeasureResult `json:"measures"`
	Series   []SeriesResult  `json:"series,omitempty"`
	Title    string          `json:"title,omitempty"`
	Took     float64         `json:"took_s"` // from the moment that the lab was up to the end of all

	Certificate *fidelity.Certificate `json:"certificate,omitempty"` // of the engine; nil in a lab without one, and of half a run
}

// A StepResult is one step of the timeline, when it was due and when it began, both from the moment
// that the lab was up.
type StepResult struct {
	At     float64 `json:"at_s"`
	Began  float64 `json:"began_s"`
	Took   float64 `json:"took_s"`
	Do     string  `json:"do"`
	Label  string  `json:"label,omitempty"`
	Output string  `json:"output,omitempty"` // of exec
	Error  string  `json:"error,omitempty"`
}

// A MeasureResult is one command with its output.
type MeasureResult struct {
	Name   string  `json:"name"`
	Node   string  `json:"node"`
	Began  float64 `json:"began_s"`
	Took   float64 `json:"took_s"`
	Exit   int     `json:"exit"`
	Output string  `json:"output"`
	Error  string  `json:"error,omitempty"`
}

// Failed reports whether a step or a measurement did not succeed.
func (r *Result) Failed() bool {
	for _, s := range r.Steps {
		if s.Error != "" {
			return true
		}
	}
	for _, m := range r.Measures {
		if m.Exit != 0 || m.Error != "" {
			return true
		}
	}
	for _, s := range r.Series {
		if s.Error != "" {
			return true
		}
	}
	return false
}
