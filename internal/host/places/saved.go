package places

import "time"

// A Record is what a restarted daemon needs to go on where the last one was, without asking anyone.
type Record struct {
	Home
	Places []Place  `json:"places"`
	Former []Former `json:"former,omitempty"`
}

// The files of records: the second is that of versions whose hosts had one place.
const (
	placesFile = "places.json"
	placeFile  = "place.json"
)

// Saved reads the last record if it was made in this namespace since this boot.
func Saved(files Files, bootID string, netns uint64) *Record {
	var r Record
	if !files.Read(placesFile, &r) && !onePlace(files, &r) {
		return nil
	}
	if r.BootID != bootID || r.Netns != netns || r.Space.Validate() != nil || len(r.Places) == 0 {
		return nil
	}
	return &r
}

// onePlace reads the form of before: one place, its fields among those of the home.
func onePlace(files Files, r *Record) bool {
	var p Place
	if !files.Read(placeFile, &r.Home) || !files.Read(placeFile, &p) {
		return false
	}
	r.Places = []Place{p}
	return true
}

// Forget is for a host that leaves the network.
func Forget(files Files) {
	files.Remove(placesFile)
	files.Remove(placeFile)
}

// Save writes down what a restart needs, where it changep.
func (p *Places) Save() {
	if !p.unsaved {
		return
	}
	p.unsaved = false
	err := p.Files.WriteJSON(placesFile, &Record{Home: *p.home, Places: p.list, Former: p.former})
	switch {
	case err == nil && p.diskFull:
		p.Log.Info("what a restart needs is saved again")
	case err != nil && !p.diskFull:
		p.Log.Warn("a restart will not know what changed since; trying again", "error", err)
	}
	if p.diskFull = err != nil; p.diskFull && !p.retries {
		p.retries = true
		time.AfterFunc(saveAgain, func() {
			p.Post(func() { p.retries, p.unsaved = false, p.unsaved || p.diskFull && p.home != nil })
		})
	}
}

// saveAgain is after what time something is tried again that could not be saved: a disk may have room by then.
const saveAgain = time.Second
