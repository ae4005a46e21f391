package replay

import "time"

// Report is the result of a replay.
type Report struct {
	// Logs are the names of the logs, in the order they were read.
	Logs []string `json:"logs"`
	// Lines counts the lines that are not empty, Requests those that could be read.
	Lines     int64 `json:"lines"`
	Requests  int64 `json:"requests"`
	Malformed int64 `json:"malformed"`
	// Samples are the first lines that could not be read.
	Samples []Sample `json:"malformed_samples,omitempty"`
	// From and To are the first and the last time of a request.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// OutOfOrder counts requests that are older than one before them, by LongestBack at most. They
	// are decided at the time of the newest request before them.
	OutOfOrder  int64         `json:"out_of_order"`
	LongestBack time.Duration `json:"longest_back_ns"`
	// WholeSeconds reports that the log's times have no fractions. Then the log does not show the
	// effect of limits of less than a second.
	WholeSeconds bool `json:"whole_seconds"`
	// Missing names the values that the policies read and the logs lack.
	Missing []string `json:"missing,omitempty"`
	// File is the name of the policy file.
	File string `json:"file"`
	// Allowed and Denied make up all requests; of the denied, Bad were answered with 400.
	// DryRunDenied would have been denied by a policy with dry-run: true.
	Allowed      int64 `json:"allowed"`
	Denied       int64 `json:"denied"`
	Bad          int64 `json:"bad"`
	DryRunDenied int64 `json:"dry_run_denied"`
	// Waits are the names of the policies in which requests wait for their turn. Nobody waits in a
	// replay: a request that would have waited counts as denied.
	Waits []string `json:"waits,omitempty"`
	// Policies are in the order of the file.
	Policies []PolicyReport `json:"policies"`
	// Keys are those that were denied most. KeysMissed counts the requests of keys that were not
	// counted, because there were too many keys before them.
	Keys       []KeyReport `json:"keys,omitempty"`
	KeysMissed int64       `json:"keys_missed"`
	// Routes are the paths that were denied most, with identifiers replaced.
	Routes []RouteReport `json:"routes,omitempty"`
	// Series has the counts over time.
	Series Series `json:"series"`
	// Clients is about the addresses of clients.
	Clients ClientReport `json:"clients"`
	// Sweeps are the effects of other quotas.
	Sweeps []Sweep `json:"sweeps,omitempty"`
}

// Sample is a line that could not be read.
type Sample struct {
	Log     string `json:"log"`
	Line    int    `json:"line"`
	Text    string `json:"text"` // at most its first 200 bytes
	Problem string `json:"problem"`
}

// PolicyReport is about one policy. If several policies deny a request, the one that decided counts
// it.
type PolicyReport struct {
	Policy       string `json:"policy"`
	DryRun       bool   `json:"dry_run"`
	Denied       int64  `json:"denied"`
	DryRunDenied int64  `json:"dry_run_denied"`
}

// KeyReport is about one key of one rule.
type KeyReport struct {
	Policy   string `json:"policy"`
	Rule     string `json:"rule"`
	Key      string `json:"key"`
	Requests int64  `json:"requests"`
	Denied   int64  `json:"denied"`
}

// RouteReport is about one route.
type RouteReport struct {
	Route    string `json:"route"`
	Requests int64  `json:"requests"`
	Denied   int64  `json:"denied"`
}

// Series is counts over time, each point Width long.
type Series struct {
	Start  time.Time     `json:"start"`
	Width  time.Duration `json:"width_ns"`
	Points []Point       `json:"points"`
}

// Point is of one width of time.
type Point struct {
	Allowed      int64 `json:"allowed"`
	Denied       int64 `json:"denied"`
	DryRunDenied int64 `json:"dry_run_denied,omitempty"`
}

// ClientReport is about the addresses that requests came from.
type ClientReport struct {
	Clients int `json:"clients"`
	Denied  int `json:"denied"`
	// HonestPerMinute is the highest number of requests of an honest client in any minute of the
	// clock. Honest counts the honest clients that were denied, and HonestDenied their denied
	// requests.
	HonestPerMinute int64 `json:"honest_per_minute"`
	Honest          int   `json:"honest_hit"`
	HonestDenied    int64 `json:"honest_denied"`
	// Examples are the honest clients that were denied most.
	Examples []ClientExample `json:"honest_examples,omitempty"`
	// Missed counts the requests of clients that came when there were too many.
	Missed int64 `json:"missed"`
}

// ClientExample is one client.
type ClientExample struct {
	Client   string `json:"client"`
	Requests int64  `json:"requests"`
	Denied   int64  `json:"denied"`
	Busiest  int64  `json:"busiest_minute"`
}

// Sweep has the denials of one policy alone, with other quotas.
type Sweep struct {
	Policy   string       `json:"policy"`
	Requests int64        `json:"requests"`
	Points   []SweepPoint `json:"points"`
}

// SweepPoint has the denials with all of the policy's quotas multiplied by Factor.
type SweepPoint struct {
	Factor float64  `json:"factor"`
	Quotas []int64  `json:"quotas"`
	Limits []string `json:"limits"`
	Denied int64    `json:"denied"`
}
