//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

const module = "github.com/floodgate-go/floodgate/"

// wholeFiles returns a coverage profile in which all of the area's code is run.
// gremlins leaves code alone that no test runs. A profile of the tests would
// leave out too much: it knows no conditions of switch cases, no constants and
// no variables outside of functions. A break in code that no test runs lives.
func wholeFiles(a area, files *regexp.Regexp) ([]byte, error) {
	profile := []byte("mode: set\n")
	err := filepath.WalkDir(a.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !isCode(path) {
			return err
		}
		name, err := filepath.Rel(a.dir, path)
		if name = filepath.ToSlash(name); err == nil && files.MatchString(name) {
			profile = fmt.Appendf(profile, "%s%s/%s:1.1,1000000.1 1 1\n", module, a.dir, name)
		}
		return err
	})
	return profile, err
}

// points returns a profile in which nothing is run but the given mutants.
func points(a area, ms []mutant, files *regexp.Regexp) []byte {
	profile := []byte("mode: set\n")
	for _, m := range ms {
		if files.MatchString(m.File) {
			profile = fmt.Appendf(profile, "%s%s/%s:%d.%d,%d.%d 1 1\n", module, a.dir, m.File, m.Line, m.Column, m.Line, m.Column)
		}
	}
	return profile
}

// stagesOf returns the stages of the area.
func stagesOf(ctx context.Context, a area, goTool string) (stages []stage, err error) {
	for _, patterns := range a.tests {
		args, err := arguments(ctx, goTool, patterns)
		if err != nil {
			return nil, err
		}
		stages = append(stages, stage{Arguments: args})
	}
	return stages, nil
}

// measure runs the tests of the stages without a break, for the time that they take.
func measure(ctx context.Context, a area, stages []stage, goTool string) error {
	for i, s := range stages {
		start := time.Now()
		out, err := exec.CommandContext(ctx, goTool, append([]string{"test", "-count=1"}, s.Arguments...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("the tests of %s fail before anything is broken: %w\n%s", a.dir, err, bytes.TrimSpace(out))
		}
		stages[i].Limit = 30*time.Second + 4*time.Since(start)
	}
	return nil
}
