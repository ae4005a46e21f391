package replay

import "time"

// Report is what a replay has found.
type Report struct {
	// Logs are the names of the logs, in the order they were read.
	Logs []string `json:"logs"`
	// Lines are all that are not empty, Requests those that could be read.
	Lines     int64 `json:"lines"`
	Requests  int64 `json:"requests"`
	Malformed int64 `json:"malformed"`
	// Outliers are lines whose time is far from those of the lines around them:
	// they are left out.
	Outliers int64 `json:"outliers"`
	// Samples are the first lines that could not be read or were left out.
	Samples []Sample `json:"malformed_samples,omitempty"`
	// From and To are the first and the last time of a request.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// OutOfOrder are requests that are older than one before them, by LongestBack
	// at the most. They are decided at the time of the newest before them.
	OutOfOrder  int64         `json:"out_of_order"`
	LongestBack time.Duration `json:"longest_back_ns"`
	// WholeSeconds says that the log's times have no fractions: what limits of
	// less than a second would do cannot be told from it.
	WholeSeconds bool `json:"whole_seconds"`
	// Missing is what the policies ask for and the logs do not have.
	Missing []string `json:"missing,omitempty"`
	// Files has an entry for each policy file.
	Files []FileReport `json:"files"`
}

// Sample is a line that could not be read.
type Sample struct {
	Log     string `json:"log"`
	Line    int    `json:"line"`
	Text    string `json:"text"` // at most its first 200 bytes
	Problem string `json:"problem"`
}

// FileReport is what one policy file would have done.
type FileReport struct {
	File string `json:"file"`
	// Admitted and Refused make up all requests; of the refused, Bad were
	// answered with 400. Rehearsed would have been refused by a shadow policy.
	Admitted  int64 `json:"admitted"`
	Refused   int64 `json:"refused"`
	Bad       int64 `json:"bad"`
	Rehearsed int64 `json:"rehearsed"`
	// Policies are in the order of the file.
	Policies []PolicyReport `json:"policies"`
	// Keys are those that were refused most. Above KeysHeld keys the rarest are
	// forgotten, and their counts may be too small by KeysMissed.
	Keys       []KeyReport `json:"keys,omitempty"`
	KeysHeld   int         `json:"keys_held"`
	KeysMissed int64       `json:"keys_missed"`
	// Routes are the paths with what looks like an identifier taken out, those
	// that were refused most.
	Routes []RouteReport `json:"routes,omitempty"`
	// Series is over time.
	Series Series `json:"series"`
	// Clients are the addresses.
	Clients ClientReport `json:"clients"`
	// KeyHistogram has how many keys had how many requests.
	KeyHistogram []Bar `json:"key_histogram,omitempty"`
	// Sweeps are what other quotas would do.
	Sweeps []Sweep `json:"sweeps,omitempty"`
}

// PolicyReport is of one policy. Several may refuse one request, which is
// counted for the one that has decided.
type PolicyReport struct {
	Policy    string `json:"policy"`
	Shadow    bool   `json:"shadow"`
	Refused   int64  `json:"refused"`
	Rehearsed int64  `json:"rehearsed"`
}

// KeyReport is of one key of one rule.
type KeyReport struct {
	Policy   string `json:"policy"`
	Rule     string `json:"rule"`
	Key      string `json:"key"`
	Requests int64  `json:"requests"`
	Refused  int64  `json:"refused"`
}

// RouteReport is of one route.
type RouteReport struct {
	Route    string `json:"route"`
	Requests int64  `json:"requests"`
	Refused  int64  `json:"refused"`
}

// Series is counts over time, each point Width long.
type Series struct {
	Start  time.Time     `json:"start"`
	Width  time.Duration `json:"width_ns"`
	Points []Point       `json:"points"`
}

// Point is of one width of time.
type Point struct {
	Admitted  int64 `json:"admitted"`
	Refused   int64 `json:"refused"`
	Rehearsed int64 `json:"rehearsed,omitempty"`
}

// ClientReport is of the addresses that requests came from.
type ClientReport struct {
	Clients int `json:"clients"`
	Refused int `json:"refused"`
	// HonestPerMinute is what an honest client does not go beyond in any minute
	// of the clock; Honest are those of them who were refused, HonestRefused how
	// many of their requests.
	HonestPerMinute int64 `json:"honest_per_minute"`
	Honest          int   `json:"honest_hit"`
	HonestRefused   int64 `json:"honest_refused"`
	// Examples are the honest clients that were refused most.
	Examples []ClientExample `json:"honest_examples,omitempty"`
	// Missed is how much counts may be too small; see FileReport.Keys.
	Missed int64 `json:"missed"`
}

// ClientExample is of one client.
type ClientExample struct {
	Client   string `json:"client"`
	Requests int64  `json:"requests"`
	Refused  int64  `json:"refused"`
	Busiest  int64  `json:"busiest_minute"`
}

// Bar is how many keys had From to To requests, and how many of those were
// refused.
type Bar struct {
	From     int64 `json:"from"`
	To       int64 `json:"to"`
	Keys     int64 `json:"keys"`
	Requests int64 `json:"requests"`
	Refused  int64 `json:"refused"`
}

// Sweep is what one policy by itself would refuse with other quotas.
type Sweep struct {
	Policy   string       `json:"policy"`
	Requests int64        `json:"requests"`
	Points   []SweepPoint `json:"points"`
}

// SweepPoint is of all of the policy's quotas times Factor.
type SweepPoint struct {
	Factor  float64  `json:"factor"`
	Quotas  []int64  `json:"quotas"`
	Limits  []string `json:"limits"`
	Refused int64    `json:"refused"`
}
