package joining

import "time"

// pace decides how many exchanges may be under way, from the time that the fastest
// of the last ones took, without the members' weights. Exchanges that wait for a
// busy server or process take longer, which is no reason to send more of them.
type pace struct {
	atOnce          int
	fastest, before time.Duration // of the running count, and of the one before; 0: none
	count           int
}

const (
	fewest = 2 // enough for one to be under way while the next is being made
	// spacing is the time between two exchanges if as many as permitted are under
	// way: short beside any distance for which more than two are permitted.
	spacing = 100 * time.Microsecond
	// most is the highest number of exchanges under way, however far the server is.
	most = 12
	// counted is how many exchanges make up a count.
	counted = 256
)

func (p *pace) note(took time.Duration) {
	took = max(took, 1)
	if p.fastest == 0 || took < p.fastest {
		p.fastest = took
	}
	if p.count++; p.count == counted {
		p.before, p.fastest, p.count = p.fastest, 0, 0
	}
	t := p.fastest
	if t == 0 || p.before > 0 && p.before < t {
		t = p.before
	}
	p.atOnce = min(max(int(t/spacing), fewest), most)
}
