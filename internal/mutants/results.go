//go:build unix

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
)

// results are what is kept of an area for the next run.
type results struct {
	Code    string // hash of the area's code
	Mutants []mutant
}

func readResults(file string) (r results, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

func (r results) write(file string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// merge takes over what a run over some of the mutants has found.
func (r *results) merge(found []mutant) {
	at := map[mutant]int{}
	for i, m := range r.Mutants {
		at[mutant{position: m.position, Type: m.Type}] = i
	}
	for _, m := range found {
		i, known := at[mutant{position: m.position, Type: m.Type}]
		switch {
		case !known:
			r.Mutants = append(r.Mutants, m)
		case m.Status != statusNotCovered: // which also means that the run left it alone
			r.Mutants[i].Status = m.Status
		}
	}
	sortMutants(r.Mutants)
}

// hashCode returns a hash of the code that is broken.
func hashCode(a area) (string, error) {
	var all bytes.Buffer
	err := filepath.WalkDir(a.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !isCode(path) {
			return err
		}
		name, err := filepath.Rel(a.dir, path)
		if err != nil || a.excludes(filepath.ToSlash(name)) {
			return err
		}
		text, err := os.ReadFile(path)
		all.WriteString(name)
		all.Write(text)
		return err
	})
	sum := sha256.Sum256(all.Bytes())
	return hex.EncodeToString(sum[:8]), err
}
