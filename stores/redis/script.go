package redisstore

import (
	"crypto/sha1" //nolint:gosec // EVALSHA names scripts by SHA-1; nothing is trusted for it
	"embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

//go:embed script
var embedded embed.FS

// algorithms is a set of algorithms, a bit for each wire number.
type algorithms uint8

func only(some ...meter.Algorithm) (all algorithms) {
	for _, a := range some {
		all |= 1 << a.Wire()
	}
	return all
}

// scripts puts the scripts together from the files of a folder: for the algorithms that the
// rules of a command use, the script that has those and no others.
type scripts struct {
	folder fs.FS
	made   [1 << 8]atomic.Pointer[script]
}

// script is a script as commands have it, boxed once.
type script struct{ text, sha any }

var library = &scripts{folder: embedded}

func (s *scripts) of(some algorithms) *script {
	if made := s.made[some].Load(); made != nil {
		return made
	}
	text := s.write(some)
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
	made := &script{text: text, sha: hex.EncodeToString(sum[:])}
	s.made[some].Store(made)
	return made
}

// functions is the step of main.lua at which the functions of the algorithms stand.
const functions = "functions"

// write writes main.lua with the steps of the algorithms in the places of their lines.
func (s *scripts) write(some algorithms) string {
	steps := map[string]*strings.Builder{functions: new(strings.Builder)}
	if some&only(meter.SlidingWindow, meter.TokenBucket) != 0 {
		steps[functions].WriteString(s.read("muldiv"))
	}
	for _, a := range meter.Algorithms() {
		if some&only(a) == 0 {
			continue
		}
		step := functions
		for line := range strings.Lines(s.read(a.String())) {
			name, ok := stepOf(line)
			if !ok {
				steps[step].WriteString(line)
				continue
			}
			step = name
			if steps[step] == nil {
				steps[step] = new(strings.Builder)
			}
			word := "if"
			if steps[step].Len() > 0 {
				word = "elseif"
			}
			fmt.Fprintf(steps[step], "%s algorithm == %d then\n", word, a.Wire())
		}
	}
	var b strings.Builder
	for line := range strings.Lines(s.read("main")) {
		name, ok := stepOf(line)
		switch {
		case !ok:
			b.WriteString(line)
		case steps[name] != nil:
			b.WriteString(steps[name].String())
			if name != functions {
				b.WriteString("end\n")
			}
		}
	}
	return b.String()
}

// stepOf returns the step that a line names.
func stepOf(line string) (name string, ok bool) {
	name, found := strings.CutPrefix(strings.TrimSpace(line), "--[")
	name, ok = strings.CutSuffix(name, "]")
	return name, found && ok
}

func (s *scripts) read(name string) string {
	text, err := fs.ReadFile(s.folder, "script/"+name+".lua")
	if err != nil {
		panic(err) // a test reads every file
	}
	return string(text)
}

// Arguments of the commands, boxed once.
var (
	evalsha any = "evalsha"
	eval    any = "eval"
)

// The script's verbs: see script/main.lua.
const (
	verbTake byte = iota
	verbPeek
	verbCharge
	verbGrant
	verbRefund
	verbBlock
	verbReset
)

// A rule's limits as the script reads them: how many bytes come before the limits, the
// size of a limit, and the places of some of its numbers.
const (
	textHead      = 1
	textLimit     = 46
	textQuota     = 13
	textCapacity  = 17
	textUnlimited = 21
	textNumbers   = 22
)

// encodeLimits writes a rule's limits as the script reads them. deny means that
// a value that cannot be read denies its key.
func encodeLimits(rule []core.Limit, deny bool) string {
	le := binary.LittleEndian
	b := make([]byte, 1, textHead+textLimit*len(rule))
	if deny {
		b[0] = 1
	}
	for _, limit := range rule {
		l := meter.FromCore(limit)
		id := l.Identity()
		precision, numbers := id.Detail(), [3]int64{l.Quota, l.Capacity} // of a calendar, see edges
		if id.Algorithm == meter.Lockout {
			precision, numbers = l.Waits.First, [3]int64{l.Waits.Factor, l.Waits.Longest, l.Waits.Decay}
		}
		b = append(b, id.Kind())
		b = appendUint48(b, id.Window)
		b = appendUint48(b, precision)
		b = le.AppendUint32(b, uint32(l.Quota))
		b = le.AppendUint32(b, uint32(l.Capacity))
		b = append(b, 0)
		for _, n := range numbers {
			b = le.AppendUint64(b, uint64(n))
		}
	}
	return string(b)
}

func appendUint48(b []byte, n int64) []byte {
	return append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24), byte(n>>32), byte(n>>40))
}
