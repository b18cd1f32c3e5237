// Package transactions_test attacks changes of several packages: commands and managers are processes that are killed,
// replaced and cut off.
package transactions_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// namespace is that of the managers.
const namespace = "transactions"

// The calamities of a round.
const (
	commandKilled    = "a command is killed"
	managerKilled    = "the leading manager is killed"
	bothKilled       = "a command and the leading manager are killed"
	managerReplaced  = "the leading manager is replaced"
	managerCutOff    = "the leading manager has no network"
	longestPartition = time.Minute
)

// Whatever happens to commands and managers, the packages are as the transactions that have succeeded left them, in the
// order in which they ended. No edit of another client is lost, and nothing is left behind.
//
// hardening: J1
func TestChangesAreWholeWhateverFails(t *testing.T) {
	calamities := []string{commandKilled, managerReplaced, managerCutOff}
	rounds, partition := len(calamities), 2*time.Second
	if lane.IsFull() {
		calamities = append(calamities, managerKilled, bothKilled)
		rounds, partition = 100, longestPartition
	}
	log.SetLogger(logr.Discard())
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := newSuite(t, rand.New(rand.NewPCG(seed, 0)))
	for round := range rounds {
		calamity := calamities[round%len(calamities)]
		s.round(t, round, calamity, partition)
		if calamity == managerCutOff {
			partition = 2 * time.Second // One long partition is enough.
		}
		if t.Failed() {
			t.Fatalf("failed in the round %d: %s", round, calamity)
		}
	}
	t.Logf("%d rounds: %v", rounds, s.counts)
	if lane.IsFull() && (s.counts["struck"] < rounds/2 || s.counts[string(v1alpha1.Succeeded)] < rounds/2 ||
		s.counts[string(v1alpha1.Returned)] == 0) {
		t.Error("the rounds prove too little")
	}
}

// suite has two managers, of which one leads, and four packages: "deck" requires "hull".
type suite struct {
	*env.Env
	random   *rand.Rand
	program  string
	versions map[string][]lockfile.Package
	managers []*manager
	// state is the version of each package that the transactions have left, and ended the transactions that are part of
	// it.
	state  map[string]string
	ended  map[string]bool
	counts map[string]int
}

type manager struct {
	*program.Manager
	*gate
}

func newSuite(t *testing.T, random *rand.Rand) *suite {
	t.Helper()
	s := &suite{
		Env: env.New(t), random: random, program: program.Build(t), versions: map[string][]lockfile.Package{},
		state: map[string]string{}, ended: map[string]bool{}, counts: map[string]int{},
	}
	for _, name := range []string{"deck", "hull", "mast", "rope"} {
		for _, version := range []string{"v1.0.0", "v2.0.0", "v3.0.0"} {
			p := lockfile.Package{Repository: s.Registry + "/acme/" + name, Version: version, Kind: xpkg.Configuration}
			content := fmt.Sprintf(
				"apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: %s, annotations: {version: %s}}\n",
				name, version,
			)
			if name == "deck" {
				p.Dependencies = []dependency.Dependency{{Package: s.Registry + "/acme/hull", Constraint: ">=v1.0.0"}}
				content += fmt.Sprintf("spec: {dependsOn: [{configuration: %s/acme/hull, version: '>=v1.0.0'}]}\n", s.Registry)
			}
			var err error
			if p.Digest, err = publish.Package(t.Context(), p.Repository+":"+
				version, []byte(content+xrd(name, version))); err != nil {
				t.Fatal(err)
			}
			s.versions[name] = append(s.versions[name], p)
		}
	}
	s.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	s.managers = []*manager{s.startManager(t), s.startManager(t)}
	return s
}

func xrd(name, version string) string {
	return fmt.Sprintf(`---
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xthings.%[1]s.test}
spec:
  group: %[1]s.test
  names: {kind: XThing, plural: xthings}
  versions:
  - {name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object, description: %[2]s}}}
`, name, version)
}

func (s *suite) startManager(t *testing.T) *manager {
	t.Helper()
	g := newGate(t, s.Config)
	return &manager{
		program.Start(t, s.program, g.kubeconfig, t.TempDir(), "--leader-election", "--namespace", namespace), g,
	}
}

// leader returns the manager that leads and has started. One whose start fails ends, and its cluster starts it again.
func (s *suite) leader(t *testing.T) (leads *manager) {
	t.Helper()
	wait.Until(t, env.Limit, "a manager leads", func() (string, bool) {
		for _, m := range s.managers {
			if isLeading(m.Log()) && m.isWatched() {
				leads = m
			}
		}
		return s.managers[0].Log() + s.managers[1].Log(), leads != nil
	})
	return leads
}

// isLeading reports whether a manager with a log leads.
func isLeading(log string) bool {
	return strings.LastIndex(log, "leads") > strings.LastIndex(log, "is no longer the leader")
}

// replace starts a manager in place of another one.
func (s *suite) replace(t *testing.T, former *manager) {
	t.Helper()
	s.managers[slices.Index(s.managers, former)] = s.startManager(t)
}

// command is a process of a command.
type command struct {
	args     []string
	cmd      *exec.Cmd
	output   bytes.Buffer
	gate     *gate
	isKilled bool
}

func (s *suite) command(t *testing.T, args ...string) *command {
	t.Helper()
	c := &command{args: args, gate: newGate(t, s.Config)}
	home := t.TempDir()
	c.cmd = exec.Command(s.program, args...)
	c.cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+home, "KUBECONFIG="+c.gate.kubeconfig)
	c.cmd.Stdout, c.cmd.Stderr = &c.output, &c.output
	return c
}

// randomCommand returns a command that changes two packages or more, or nil if there are too few.
func (s *suite) randomCommand(t *testing.T) *command {
	t.Helper()
	limit := []string{"--yes", "--wait", []string{"1ms", "1m", "1m"}[s.random.IntN(3)]}
	installed := slices.Sorted(maps.Keys(s.state))
	s.random.Shuffle(len(installed), func(i, k int) { installed[i], installed[k] = installed[k], installed[i] })
	switch n := s.random.IntN(4); {
	case n == 0 && len(installed) > 2 &&
		(!slices.Contains(installed, "acme-deck") || !slices.Contains(installed[:2], "acme-hull")):
		return s.command(t, append([]string{"uninstall", installed[0], installed[1]}, limit...)...)
	case n == 1 && len(installed) > 1:
		return s.command(
			t, append([]string{"update", s.target(installed[0]), s.target(installed[1]), "--atomic"}, limit...)...,
		)
	}
	var file lockfile.File
	for _, name := range slices.Sorted(maps.Keys(s.versions)) {
		if isNeeded := name == "hull" && len(file.Packages) > 0; !isNeeded && s.random.IntN(3) == 0 {
			continue
		}
		p := s.versions[name][s.random.IntN(3)]
		file.Packages = append(file.Packages, p)
		file.Roots = append(file.Roots, dependency.Root{Package: p.Repository, Constraint: p.Version})
	}
	path := filepath.Join(t.TempDir(), "xpkg.lock")
	if err := os.WriteFile(path, lockfile.Encode(file), 0o644); err != nil {
		t.Fatal(err)
	}
	return s.command(t, append([]string{"install", "--lock", path, "--atomic"}, limit...)...)
}

// target returns an argument that updates a package to a random version.
func (s *suite) target(name string) string {
	return objectName(name) + "@" + s.versions[strings.TrimPrefix(name, "acme-")][s.random.IntN(3)].Version
}

func (s *suite) round(t *testing.T, round int, calamity string, partition time.Duration) {
	t.Helper()
	leader := s.leader(t)
	var commands []*command
	for range 2 {
		commands = append(commands, s.randomCommand(t))
	}
	struck := make(chan struct{}, 2)
	strikeOf := func(calls int, do func()) strike {
		return strike{call: s.random.IntN(calls), isAfter: s.random.IntN(2) == 0, do: func() { do(); struck <- struct{}{} }}
	}
	switch calamity {
	case commandKilled, bothKilled:
		victim := commands[0]
		victim.isKilled = true
		victim.gate.strikeAt(strikeOf(40, func() { _ = victim.cmd.Process.Kill() }))
	}
	switch calamity {
	case managerKilled, bothKilled:
		leader.strikeAt(strikeOf(150, leader.Kill))
	case managerReplaced, managerCutOff:
		leader.strikeAt(strikeOf(100, func() {}))
	}
	for _, c := range commands {
		if err := c.cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, c := range commands {
			_ = c.cmd.Wait()
		}
	}()
	edited := s.edit(t, round)
	select {
	case <-struck:
		s.counts["struck"]++
	case <-done:
	}
	switch calamity {
	case managerKilled, bothKilled:
		leader.Kill()
		s.replace(t, leader)
	case managerReplaced:
		leader.Stop(t)
		s.replace(t, leader)
	case managerCutOff:
		leader.close()
		healed := time.After(partition)
		<-healed
		leader.open()
	}
	select {
	case <-done:
	case <-time.After(2 * env.Limit):
		for _, c := range commands {
			_ = c.cmd.Process.Kill()
		}
		<-done
		t.Errorf("the commands do not end")
	}
	s.verify(t, round, commands, edited)
}

// edit makes the edit of another client at a package, and returns its name, or "" if there is none.
func (s *suite) edit(t *testing.T, round int) (name string) {
	t.Helper()
	for name := range s.state {
		p := env.NewPackage(v1.ConfigurationKind, name, "")
		patch := client.RawPatch(
			"application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/edit":"%d"}}}`, round),
		)
		if s.Client.Patch(t.Context(), p, patch, client.FieldOwner("kubectl")) == nil {
			return name
		}
	}
	return ""
}

// verify waits until all transactions have ended, and compares the packages with their result.
func (s *suite) verify(t *testing.T, round int, commands []*command, edited string) {
	t.Helper()
	var all []v1alpha1.Transaction
	wait.Until(t, 2*env.Limit, "all transactions have ended", func() (string, bool) {
		var list v1alpha1.TransactionList
		if err := s.Client.List(t.Context(), &list); err != nil {
			return err.Error(), false
		}
		all = slices.DeleteFunc(list.Items, func(x v1alpha1.Transaction) bool { return s.ended[x.Name] })
		open := slices.DeleteFunc(
			slices.Clone(all), func(x v1alpha1.Transaction) bool { return x.Status.Phase.IsFinal() && len(x.Finalizers) == 0 },
		)
		seen := fmt.Sprintf("round %d:\n%s", round, describe(open, commands))
		for _, m := range s.managers {
			seen += "\n" + m.Log()[max(0, len(m.Log())-2000):]
		}
		return seen, len(open) == 0
	})
	slices.SortFunc(all, func(a, b v1alpha1.Transaction) int {
		return a.Status.CompletionTime.Compare(b.Status.CompletionTime.Time)
	})
	removed := false
	for _, x := range all {
		s.ended[x.Name] = true
		s.counts[string(x.Status.Phase)]++
		removed = s.apply(t, x) || removed
	}
	for name := range s.versions {
		name = objectName(name)
		wait.Until(t, env.Limit, name+" is as the transactions have left it", func() (string, bool) {
			p := v1.NewPackage(v1.ConfigurationKind)
			is, err := "", s.Client.Get(t.Context(), client.ObjectKey{Name: name}, p)
			if err == nil {
				is = tagOf(p.PackageSpec().Package)
			}
			isHeld := p.GetCondition(v1.TypeInTransaction).Reason != ""
			isLost := name == edited && err == nil && !removed && p.GetAnnotations()["example.com/edit"] != fmt.Sprint(round)
			ready := is == "" || env.IsReady(p)
			return fmt.Sprintf(
					"round %d: %q, want %q, held %t, ready %t, edit lost %t\n%s", round, is, s.state[name], isHeld, ready, isLost,
					describe(all, commands),
				),
				is == s.state[name] && !isHeld && ready && !isLost
		})
	}
	for _, c := range commands {
		// A refusal, a failure that was returned, and an interrupted wait have codes of their own.
		if code := c.cmd.ProcessState.ExitCode(); code == 1 && !c.isKilled {
			t.Errorf("%s has failed for no known reason:\n%s", c.args, c.output.String())
		}
	}
}

// apply changes the state as a transaction has, and reports whether it has removed packages.
func (s *suite) apply(t *testing.T, x v1alpha1.Transaction) (removed bool) {
	t.Helper()
	switch x.Status.Phase {
	case v1alpha1.Succeeded:
		for _, p := range x.Spec.Packages {
			s.state[p.Name] = tagOf(p.Spec.Package)
		}
		for _, p := range x.Spec.Remove {
			delete(s.state, p.Name)
		}
	case v1alpha1.Failed:
		if x.Spec.OnFailure != v1alpha1.Keep {
			t.Errorf("%s has failed: %+v", x.Name, x.Status)
		}
		for _, p := range x.Spec.Remove { // What it has removed until then is kept.
			if client.IgnoreNotFound(s.Client.Get(
				context.Background(), client.ObjectKey{Name: p.Name}, v1.NewPackage(p.Kind),
			)) == nil {
				delete(s.state, p.Name)
			}
		}
	}
	return len(x.Spec.Remove) > 0 && x.Status.Phase != v1alpha1.Refused
}

func describe(all []v1alpha1.Transaction, commands []*command) string {
	var out []string
	for _, x := range all {
		out = append(out, fmt.Sprintf("%s %s %s: %s", x.Name, x.Status.Phase, x.Status.Reason, x.Status.Message))
	}
	for _, c := range commands {
		out = append(out, fmt.Sprintf("%s: %d\n%s", c.args, c.cmd.ProcessState.ExitCode(), c.output.String()))
	}
	return strings.Join(out, "\n")
}

// objectName returns the name of the package that is installed from a repository.
func objectName(name string) string { return "acme-" + strings.TrimPrefix(name, "acme-") }

// tagOf returns the tag of a reference, which can have a digest too.
func tagOf(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	return ref[strings.LastIndex(ref, ":")+1:]
}
