//go:build unix

// Command mutants breaks the code on purpose, one operator at a time, runs the
// tests against each break, and reports the breaks that no test notices. make
// mutants runs it. The breaks are made by gremlins
// (https://github.com/go-gremlins/gremlins).
//
// It works area by area (areas.go): a directory, the tests that must notice a
// break in it, and the share of breaks that they must notice. Survivors that
// nothing can observe are listed in survivors.txt, with a reason.
//
// gremlins calls the go command through this program (gotool.go), because
// gremlins alone tests the wrong package if a package is not named like its
// directory, takes code that does not compile for a break that was noticed, and
// leaves the processes of tests that it has stopped running.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

func main() {
	if text := os.Getenv(planVariable); text != "" {
		var p plan
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			os.Exit(orFail(err))
		}
		os.Exit(actAsGo(p, os.Args[1:]))
	}
	var r runner
	flag.StringVar(&r.gremlins, "gremlins", ".tools/gremlins", "the gremlins `command`")
	flag.StringVar(&r.results, "results", ".tools/mutants", "the `directory` for results")
	flag.BoolVar(&r.again, "again", false, "break again only what survived the last run")
	flag.BoolVar(&r.report, "report", false, "run nothing: report the last run's results")
	flag.BoolVar(&r.work, "work", false, "keep the working directory")
	files := flag.String("files", "", "break only files whose path below the area matches the regular `expression`")
	flag.Parse()
	var err error
	if r.files, err = regexp.Compile(*files); err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		err = r.run(ctx, flag.Args())
		stop()
	}
	os.Exit(orFail(err))
}

// runner runs the areas one by one.
type runner struct {
	gremlins, results string
	again, report     bool
	work              bool
	files             *regexp.Regexp
	goTool            string
	bin               string // holds this program under the name go
}

func (r *runner) run(ctx context.Context, dirs []string) (err error) {
	listed, err := readSurvivors("internal/mutants/survivors.txt")
	if err != nil {
		return err
	}
	if r.goTool, err = exec.LookPath("go"); err != nil {
		return err
	}
	for _, dir := range []*string{&r.gremlins, &r.results} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(r.results, 0o755); err != nil {
		return err
	}
	if err := limitMemory(); err != nil {
		return err
	}
	r.bin, err = os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	if r.work {
		fmt.Fprintln(os.Stderr, "mutants: working in", r.bin)
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(r.bin)) }()
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Symlink(self, filepath.Join(r.bin, "go")); err != nil {
		return err
	}
	if len(dirs) == 0 {
		for _, a := range areas {
			dirs = append(dirs, a.dir)
		}
	}
	var tallies []tally
	for _, dir := range dirs {
		a := areaOf(dir)
		ms, err := r.area(ctx, a, listed)
		if err != nil {
			return fmt.Errorf("%s: %w", a.dir, err)
		}
		t := count(a, ms, listed)
		fmt.Print(t.survivors())
		tallies = append(tallies, t)
	}
	text, err := summary(tallies)
	fmt.Print(text)
	return err
}

// area returns what became of the area's mutants.
func (r *runner) area(ctx context.Context, a area, listed survivors) ([]mutant, error) {
	file := a.file(r.results, ".json")
	code, err := hashCode(a)
	if err != nil {
		return nil, err
	}
	last, err := readResults(file)
	switch {
	case r.again || r.report:
		if err != nil {
			return nil, err
		}
		if last.Code != code {
			return nil, errors.New("the code has changed since the last run: run all of it")
		}
		if err := name(a, last.Mutants); err != nil || r.report {
			return r.chosen(last.Mutants), err
		}
	case err != nil || last.Code != code || r.files.String() == "":
		last = results{}
	}
	var profile []byte
	if r.again {
		var left []mutant
		for _, m := range last.Mutants {
			if m.Status != statusKilled && m.Status != statusNotViable && listed[m.key] == "" {
				left = append(left, m)
			}
		}
		profile = points(a, left, r.files)
	} else if profile, err = wholeFiles(a, r.files); err != nil {
		return nil, err
	}
	last.Code = code
	stages, err := stagesOf(ctx, a, r.goTool)
	if err != nil {
		return nil, err
	}
	found, err := r.unleash(ctx, a, profile, stages)
	if err != nil {
		return nil, err
	}
	last.merge(found)
	if err := last.write(file); err != nil {
		return nil, err
	}
	err = name(a, last.Mutants)
	return r.chosen(last.Mutants), err
}

// chosen returns the mutants of the files that were asked for.
func (r *runner) chosen(ms []mutant) []mutant {
	return slices.DeleteFunc(slices.Clone(ms), func(m mutant) bool { return !r.files.MatchString(m.File) })
}

// compile compiles the tests of all stages with all breaks in them. After an
// error the stages are without.
func (r *runner) compile(ctx context.Context, a area, stages []stage) ([]stage, string, error) {
	dir, err := os.MkdirTemp(r.bin, "schema-")
	if err != nil {
		return stages, "", err
	}
	overlay, ids, err := writeSchemas(ctx, a, r.goTool, dir)
	if err != nil {
		return stages, "", err
	}
	compiled := slices.Clone(stages)
	for i := range compiled {
		if err := compiled[i].compile(ctx, r.goTool, overlay, dir); err != nil {
			return stages, "", err
		}
	}
	text, err := json.Marshal(ids)
	if err != nil {
		return stages, "", err
	}
	file := filepath.Join(dir, "ids")
	return compiled, file, os.WriteFile(file, text, 0o600)
}

// unleash runs gremlins.
func (r *runner) unleash(ctx context.Context, a area, profile []byte, stages []stage) ([]mutant, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	p := plan{Go: r.goTool, Root: root, Area: a.dir, Stages: stages, Path: os.Getenv("PATH")}
	p.Log, p.Profile = filepath.Join(r.bin, "log"), filepath.Join(r.bin, "profile")
	if err := errors.Join(os.WriteFile(p.Log, nil, 0o600), os.WriteFile(p.Profile, profile, 0o600)); err != nil {
		return nil, err
	}
	if p.Stages, p.Schema, err = r.compile(ctx, a, stages); err != nil {
		fmt.Fprintln(os.Stderr, "mutants: each break is compiled by itself:", err)
		if err := measure(ctx, a, p.Stages, r.goTool); err != nil {
			return nil, err
		}
	}
	p.Limit = 4 * time.Minute
	for _, s := range p.Stages {
		p.Limit += s.Limit
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	report := filepath.Join(r.bin, "report")
	args := []string{"unleash", "-S", "lt", "-o", report}
	for _, e := range a.exclude {
		args = append(args, "-E", e)
	}
	cmd := exec.CommandContext(ctx, r.gremlins, append(args, "./"+a.dir)...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.Env = append(os.Environ(), planVariable+"="+string(text), "PATH="+r.bin+string(filepath.ListSeparator)+p.Path)
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	findings, err := readFindings(p.Log)
	if err != nil {
		return nil, err
	}
	return readReport(report, findings)
}
