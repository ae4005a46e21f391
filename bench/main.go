// Command bench measures Floodgate beside other rate limiting libraries, in one
// run, and writes a report with charts.
//
//	go run . -out report          # the short version, some minutes
//	go run . -full -out report    # the whole
//	go run . -only redis          # one scenario
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/floodgate-go/floodgate/bench/peers"
)

// effort says how much is measured.
type effort struct {
	rounds  map[string]int // of each scenario: each has processes of its own
	reps    int            // measurements in a round
	each    time.Duration  // how long one takes
	redis   time.Duration  // and one against Redis
	expiry  time.Duration  // the window of the expiry scenario
	callers []int
}

var (
	short = effort{
		rounds: map[string]int{"decision": 2, "memory": 1, "expiry": 1, "middleware": 2, "inflight": 2, "redis": 2, "admission": 2},
		reps:   3, each: 40 * time.Millisecond, redis: 250 * time.Millisecond, expiry: time.Second, callers: []int{1, 16, 64, 256},
	}
	full = effort{
		rounds: map[string]int{"decision": 5, "memory": 3, "expiry": 5, "middleware": 5, "inflight": 5, "redis": 5, "admission": 5},
		reps:   5, each: 80 * time.Millisecond, redis: 500 * time.Millisecond, expiry: 2 * time.Second, callers: []int{1, 16, 64, 256},
	}
)

// scenario measures one peer for one round.
type scenario struct {
	name string
	run  func(effort, peers.Peer) ([]Table, error)
}

var scenarios = []scenario{
	{"decision", decision}, {"memory", memory}, {"expiry", expiry}, {"middleware", middlewares}, {"inflight", inFlight}, {"redis", inRedis}, {"admission", admission},
}

// flags are the command line.
type flags struct {
	whole              bool
	out, only, profile string
	scenario, peer     string // of a process that measures one peer
}

func main() {
	var f flags
	flag.BoolVar(&f.whole, "full", false, "the whole, rather than the short version")
	flag.StringVar(&f.out, "out", "report", "folder for the report")
	flag.StringVar(&f.only, "only", "", "regular expression of the scenarios to run; the report keeps what it has of the others")
	flag.StringVar(&f.scenario, "scenario", "", "measure one peer in this scenario for one round, and print the tables")
	flag.StringVar(&f.peer, "peer", "floodgate", "which one")
	flag.StringVar(&f.profile, "cpuprofile", "", "a file for a profile of that")
	flag.Parse()
	e := short
	if f.whole {
		e = full
	}
	run := all
	if f.scenario != "" {
		run = one
	}
	if err := run(f, e); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// all runs each round of each peer in a process of its own: what one leaves
// behind, a goroutine or a heap, is nobody else's.
func all(f flags, e effort) error {
	pattern, err := regexp.Compile(f.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	begun := time.Now()
	r := Report{Date: begun, Machine: machine(), Full: f.whole}
	if f.only != "" {
		if err := r.load(f.out); err != nil {
			return err
		}
	}
	for _, s := range scenarios {
		if !pattern.MatchString(s.name) {
			continue
		}
		var tables []Table
		for round := range e.rounds[s.name] {
			fmt.Fprintf(os.Stderr, "%6v %s, round %d of %d\n", time.Since(begun).Round(time.Second), s.name, round+1, e.rounds[s.name])
			for _, p := range append(slices.Clone(peers.All), bareINCR) {
				some, err := child(f, s.name, p.Name)
				if err != nil {
					return fmt.Errorf("%s of %s: %w", s.name, p.Name, err)
				}
				tables = merge(tables, some)
			}
		}
		r.put(tables)
	}
	r.Took += time.Since(begun)
	return r.write(f.out)
}

func child(f flags, scenario, peer string) (tables []Table, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "-scenario", scenario, "-peer", peer, fmt.Sprintf("-full=%t", f.whole)) //nolint:gosec,noctx // itself; it ends
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	return tables, json.Unmarshal(out, &tables)
}

// one measures one peer and prints the tables.
func one(f flags, e effort) error {
	if f.profile != "" {
		file, err := os.Create(f.profile)
		if err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // StopCPUProfile has written it
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	for _, s := range scenarios {
		if s.name != f.scenario {
			continue
		}
		for _, p := range append(slices.Clone(peers.All), bareINCR) {
			if p.Name != f.peer {
				continue
			}
			tables, err := s.run(e, p)
			if err != nil {
				return err
			}
			return json.NewEncoder(os.Stdout).Encode(tables)
		}
	}
	return fmt.Errorf("there is no scenario %q or no peer %q", f.scenario, f.peer)
}
