package policy

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/internal/regularfile"
	"github.com/floodgate-go/floodgate/policy/internal/file"
	"github.com/floodgate-go/floodgate/policy/internal/quotas"
)

// tableID tells the tables of a Set apart: by a path below the folder of the policy
// file, or by the name of a source.
type tableID struct{ file, source string }

func idOf(q *file.Quotas) tableID { return tableID{q.File, q.Source} }

// table is a table of quotas that requests are decided with.
type table struct {
	id      tableID
	name    string // for messages
	current atomic.Pointer[quotas.Table]

	// Either path is set, of a file that is read only if it has changed, or source. If folder is set, too,
	// path must not lead out of it.
	path, folder string
	source       QuotaSource

	every  atomic.Int64  // nanoseconds between two readings
	sooner chan struct{} // every has changed
	stop   context.CancelFunc

	// The lock of the Set is held for these.
	tried    stamp  // of the file when it was last tried
	rejected bool   // what was tried last
	failure  string // the error that was reported last
}

// stamp tells versions of a file apart.
type stamp struct {
	info os.FileInfo // nil: it could not be read
	at   time.Time   // when it was read
	sum  [sha256.Size]byte
}

// fresh is how long after its time of modification a file may change again without
// another time: clocks of file systems are coarse.
const fresh = 2 * time.Second

// is reports whether a file is certain to be the one with this stamp.
func (s *stamp) is(info os.FileInfo) bool {
	return s.info != nil && os.SameFile(s.info, info) && s.info.Size() == info.Size() &&
		s.info.ModTime().Equal(info.ModTime()) && s.at.Sub(info.ModTime()) > fresh
}

// version is what a reading of a table has brought.
type version struct {
	table    *quotas.Table
	problems []quotas.Problem
	stamp    stamp
}

// find returns the row of a key, nil if there is none. The table may be nil.
func (t *table) find(key []byte) *quotas.Row {
	if t == nil {
		return nil
	}
	return t.current.Load().Find(key)
}

// newTable returns the table that a policy file names. It is nil, and problem says why, if there
// is no such table.
func newTable(q *file.Quotas, o *options, folder string) (t *table, problem, hint string) {
	t = &table{id: idOf(q), sooner: make(chan struct{}, 1)}
	if q.Source != "" {
		t.source = o.sources[q.Source]
		if t.source == nil {
			t.source = o.sources[""]
		}
		if t.source == nil {
			return nil, "the program has no source " + q.Source, "have it give policy.WithQuotas, or write file"
		}
		t.name = "source " + q.Source
		if path, is := t.source.(fileTable); is {
			t.path, t.name = string(path), string(path)
		}
		return t, "", ""
	}
	if folder == "" {
		return nil, "the folder of the policy file is not known", "have the program give policy.Folder, or read the policy file with policy.Load or policy.Watch"
	}
	t.path, t.folder, t.name = q.File, folder, filepath.Join(folder, q.File)
	return t, "", ""
}

// isFile reports whether the policy file names the table as a file. Only a Set that watches its policy file
// reads it again.
func (t *table) isFile() bool { return t.folder != "" }

// stat describes the file.
func (t *table) stat() (os.FileInfo, error) {
	if t.folder != "" {
		return regularfile.StatIn(t.folder, t.path)
	}
	return os.Stat(t.path)
}

// read reads the table. The error is the operating system's or the source's.
func (t *table) read(ctx context.Context) (v version, err error) {
	if t.path == "" {
		ctx, cancel := context.WithTimeout(ctx, readWithin)
		defer cancel()
		v.table, v.problems, err = readSource(ctx, t.source)
		return v, err
	}
	text, s, err := t.text()
	if err != nil {
		return v, err
	}
	v.stamp = s
	v.table, v.problems = quotas.Parse(text)
	return v, nil
}

// text reads the text of the file.
func (t *table) text() (text []byte, s stamp, err error) {
	s.at = time.Now()
	if t.folder != "" {
		text, s.info, err = regularfile.ReadIn(t.folder, t.path, quotas.MaxBytes)
	} else if s.info, err = os.Stat(t.path); err == nil {
		text, err = regularfile.Read(t.path, quotas.MaxBytes)
	}
	s.sum = sha256.Sum256(text)
	return text, s, err
}

// readWithin bounds the reading of a source.
const readWithin = 30 * time.Second
