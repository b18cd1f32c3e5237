package bench_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/lane"
)

// requirement is a requirement on the registry, the index or the search that tests of one package prove. Tests can also
// state numbers, as attributes, which have goals.
type requirement struct {
	key, what, pkg string
	tests          []string
	// env are additional environment variables of the tests.
	env     []string
	numbers []number
}

// number is a number that a test states.
type number struct {
	// attribute is TEST/NAME.
	attribute, what string
	// The limits; zero is no limit.
	most, least float64
	// timed means that the number is a time, which depends on other processes.
	timed bool
}

// registryRequirements are the requirements that tests prove, in the order of the table.
func registryRequirements() []requirement {
	const corpusSize, largeSize = "TestIndexOfTheCorpusIsSmall", "TestIndexOfAThousandPackagesIsSmall"
	const kindPages, diffPages = "TestKindsOfRealPackagesRender", "TestUpgradesOfRealPackagesRender"
	full := []string{lane.Variable + "=full"}
	return []requirement{
		{key: "1-rebuild-equal", what: "1 rebuild: equal on two machines, killed at any call", pkg: "internal/indexer", tests: []string{
			"TestIndexIsTheSameOnTwoMachinesAndWithoutIndexLayers", "TestBuildTakesTwoRequestsForEachVersionWithAnIndexLayer",
			"TestBuildThatIsKilledAtAnyCallLeavesTheOldOrTheNewIndex",
		}},
		{key: "1-rebuild-server", what: "1 rebuild: a server without its index and caches", pkg: "internal/registry", tests: []string{
			"TestTheServedIndexEqualsTheOneThatIndexBuildMakes",
		}},
		{key: "2-size-corpus", what: "2 size: index of the corpus", pkg: "internal/testing/corpuscatalog", tests: []string{
			corpusSize,
		}, numbers: []number{
			{attribute: corpusSize + "/search-bytes", what: "bytes for a search", most: 60 << 10},
			{attribute: corpusSize + "/whole-bytes", what: "bytes in all", most: 1200 << 10},
			{attribute: corpusSize +
				"/golden-percent", what: "percent of the golden queries with the wanted hit in the first three (row 4)", least: 95},
		}},
		{key: "2-size-large", what: "2 size: 1,000 packages × 50 versions × 200 kinds", pkg: "pkg/catalog", tests: []string{
			largeSize,
		}, numbers: []number{
			{attribute: largeSize + "/search-bytes", what: "bytes for a search", most: 2 << 20},
			{attribute: largeSize + "/whole-bytes", what: "bytes in all", most: 8 << 20},
			{attribute: largeSize + "/publish-bytes", what: "bytes for one publish", most: 24 << 10},
			{attribute: largeSize + "/manifest-bytes", what: "bytes of the manifest", most: 20 << 10},
			{attribute: largeSize + "/layers", what: "layers", most: 100},
		}},
		{key: "2-delta", what: "2 delta: an update, and a client that is up to date", pkg: "internal/indexer", tests: []string{
			"TestUpdateEqualsRebuildAndCostsLittle",
		}, numbers: []number{
			{attribute: "TestUpdateEqualsRebuildAndCostsLittle/unchanged-bytes", what: "bytes if nothing is new", most: 100},
		}},
		{key: "5-failures", what: "5 freshness: a package that cannot be indexed", pkg: "internal/indexer", tests: []string{
			"TestPackageThatCannotBeReadIsListedAndAffectsNoOther", "TestUpdateKeepsPackagesOfAnUnavailableRepository",
		}},
		{key: "6-kind-pages", what: "6 kind pages: every kind of the corpus", pkg: "internal/registry/web", env: full, tests: []string{
			kindPages, "TestEveryFieldOfTheLargestKindIsReachable", "TestSinceOfFieldsEqualsARecomputation",
			"TestSinceOfRealFieldsEqualsARecomputation", "TestPagesWorkWithoutJavaScript",
		}, numbers: []number{
			{attribute: "TestSinceOfRealFieldsEqualsARecomputation/fields", what: "fields whose first version equals a recomputation", least: 10000},
			{attribute: kindPages +
				"/examples-percent", what: "percent of pages with an example, each of which is valid", least: 95},
			{attribute: kindPages + "/kinds", what: "kinds", least: 4587},
			{attribute: kindPages + "/largest-bytes", what: "bytes after compression of the largest page", most: 60 << 10},
			{attribute: kindPages + "/warm-ms", what: "ms for the slowest page", most: 500, timed: true},
			{attribute: kindPages + "/cold-ms", what: "ms for the slowest first page of a package", most: 500, timed: true},
		}},
		{key: "7-diff-pages", what: "7 differences: pages of all pairs of the corpus", pkg: "internal/registry/web", env: full, tests: []string{
			diffPages,
		}, numbers: []number{
			{attribute: diffPages + "/pairs", what: "pairs", least: 53},
			{attribute: diffPages + "/cold-ms", what: "ms for the page of the largest release", most: 2000, timed: true},
			{attribute: diffPages + "/warm-ms", what: "ms the second time", most: 200, timed: true},
		}},
		{key: "7-diff", what: "7 differences: equal to those another program found", pkg: "pkg/crddiff", tests: []string{
			"TestUpgradesOfPublishedPackagesHaveTheKnownDifferences", "TestOnlyDifferentSpecsAreChanges",
			"TestFieldChangesAreClassed", "TestChangesOfTheCRDAreClassed",
		}},
		{key: "8-install-by-kind", what: "8 install by kind: the rules of the selection", pkg: "internal/provide", tests: []string{
			"TestProvidersAreSelectedByTheRules", "TestTheOrderOfCandidatesDoesNotMatter", "TestAnyOrderOfSourcesSelectsTheSame",
			"TestMoreSourcesNeverChangeARecordedChoice",
			"TestASquatterIsNeverSelectedAlone", "TestErrorsNameCandidatesAndCommands",
		}, numbers: []number{{attribute: "TestProvidersAreSelectedByTheRules/cases", what: "cases", least: 40}}},
		{key: "9-hostile", what: "9 hostile content in Chromium", pkg: "internal/registry/web", tests: []string{
			"TestHostilePackagesAreHarmless", "TestOwnPagesHaveNoReports", "TestWhatAClientMayNotReadDoesNotExist",
		}, numbers: []number{{attribute: "TestHostilePackagesAreHarmless/attacks", what: "attacks", least: 60}}},
		{key: "9-privacy", what: "9 privacy: the view of an anonymous client", pkg: "internal/registry", tests: []string{
			"TestAnonymousViewEqualsAServerWithoutPrivatePackages", "TestAPackageThatBecomesPrivateLeavesThePublishedIndex",
		}},
		{key: "10-states", what: "10 trust: wrong states, signatures and keys", pkg: "internal/indexer", tests: []string{
			"TestWrongStatesOfAnIndexAreRefusedWithTheirCodes", "TestOnlyAnIndexThatATrustedKeyHasSignedIsUsed",
			"TestClientWorksWithoutItsRegistryOnceItHasTheIndex",
		}},
		{key: "10-clients", what: "10 trust: crane, skopeo and registries of others", pkg: "internal/registry", tests: []string{
			"TestCraneLogsIn", "TestSkopeoLogsIn", "TestAServerInFrontOfAnotherRegistryAddsAccessControlAndSearch",
		}},
		{key: "10-mirrors", what: "10 mirrors: with statuses, after an interruption", pkg: "internal/mirror", tests: []string{
			"TestAMirrorHasTheVersionsAndTheirStatuses", "TestAnInterruptedMirrorContinues",
			"TestAMirrorOfKindsHasOnlyTheirPackages",
		}},
		{key: "10-yank", what: "10 yanked versions in solutions and locks", pkg: "pkg/resolver", tests: []string{
			"TestALockedVersionStaysAfterItIsYanked",
		}},
		{key: "10-copies", what: "10 copies by commands on the registry of CNCF distribution", pkg: "internal/cli", tests: []string{
			"TestForeignRegistry",
		}},
		{key: "10-commands", what: "10 yank, update, sign, verify and mirror with the commands", pkg: "internal/cli", tests: []string{
			"TestScripts/index",
		}},
	}
}

// registryRows measures the requirements on the registry, the index and the search that tests prove.
func registryRows(b *testing.B) []row {
	b.Helper()
	var rows []row
	for _, r := range registryRequirements() {
		rows = append(rows, r.row(b))
	}
	return append(rows, lookupRow(b))
}

// row runs the tests. Their time is that of the row.
func (r *requirement) row(b *testing.B) row {
	b.Helper()
	p := runTests(b, r.pkg, r.tests, r.env)
	passed := 0
	for _, name := range r.tests {
		if p.passed[name] {
			passed++
		}
	}
	out := row{key: "registry-" + r.key, what: r.what, wall: p.took, noise: p.noise}
	out.goals = []goal{{what: fmt.Sprintf("%d of %d tests pass", passed, len(r.tests)), met: passed == len(r.tests)}}
	for _, n := range r.numbers {
		out.goals = append(out.goals, n.goal(p))
	}
	return out
}

// goal compares the number with its limits. A number that no test stated misses its goal.
func (n *number) goal(p tested) goal {
	value, err := strconv.ParseFloat(p.attributes[n.attribute], 64)
	met := err == nil && (n.most == 0 || value <= n.most) && value >= n.least
	limit := fmt.Sprintf("at most %.0f", n.most)
	if n.most == 0 {
		limit = fmt.Sprintf("at least %.0f", n.least)
	}
	g := goal{what: fmt.Sprintf("%s %s: %.0f", limit, n.what, value), met: met}
	if n.timed {
		g.noise = p.noise
	}
	return g
}

// rebuildRows measures the rebuild of 20,000 versions.
func rebuildRows(b *testing.B) []row {
	b.Helper()
	r := runBenchmarks(b, "internal/indexer", "^BenchmarkRebuild$", "1x")
	seconds, requests := r.value(b, "Rebuild", "s/rebuild(goal:60)"), r.value(b, "Rebuild", "requests/version(goal:2)")
	out := row{
		key: "registry-1-rebuild", what: "1 rebuild: 20,000 versions at 30 ms, two machines, equal bytes",
		wall: inSeconds(seconds), noise: r.noise,
	}
	out.goals = []goal{
		wallGoal(out, time.Minute, "wall"),
		// One ping, and one list of tags for each repository, are not for a version.
		{what: fmt.Sprintf("at most 2 requests for each version: %.2f", requests), met: requests < 2.05},
	}
	return []row{out}
}

// serverSearchRows measures the search of a server with 200,000 kinds.
func serverSearchRows(b *testing.B) []row {
	b.Helper()
	r := runBenchmarks(b, "pkg/catalog", "^BenchmarkSearchUnderLoad$", "500x")
	p99, heap, built := r.value(b, "SearchUnderLoad", "p99-ms(goal:50)"),
		r.value(b, "SearchUnderLoad", "heap-MB(goal:250)"), r.value(b, "SearchUnderLoad", "build-s(goal:1)")
	out := row{
		key: "registry-4-search", what: "4 server search: 200,000 kinds, 50 requests/s, 99th percentile",
		wall: inSeconds(p99 / 1000), noise: r.noise,
	}
	out.goals = []goal{
		wallGoal(out, 50*time.Millisecond, "wall"),
		{what: fmt.Sprintf("update of the index at most 1s: %s", round(inSeconds(built))), met: built <= 1, noise: r.noise},
		{what: fmt.Sprintf("heap at most 250 MB: %.0f", heap), met: heap <= 250},
	}
	return []row{out}
}

// freshnessRows measure the time from a push until the kind is found.
func freshnessRows(b *testing.B) []row {
	b.Helper()
	r := runBenchmarks(b, "internal/registry", "^BenchmarkPushUntilFound$", "1x")
	measure := func(key, what, name, unit string, most time.Duration) row {
		out := row{key: "registry-5-" + key, what: "5 freshness: " +
			what, wall: inSeconds(r.value(b, "PushUntilFound/"+name, unit)), noise: r.noise}
		out.goals = []goal{wallGoal(out, most, "wall")}
		return out
	}
	return []row{
		measure("search", "from a push to a hit of the search", "embedded", "s/found(goal:2)", 2*time.Second),
		measure("index", "from a push to the published index", "embedded", "s/published(goal:2)", 2*time.Second),
		measure("front", "from a push to the registry behind the server", "front", "s/found(goal:60)", time.Minute),
	}
}

// lookupRow measures the selection of a provider among all published kinds.
func lookupRow(b *testing.B) row {
	b.Helper()
	r := runBenchmarks(b, "internal/provide", "^BenchmarkLookup$", "100x")
	out := r.row(b, "8 install by kind: one lookup among 4,587 kinds", "Lookup/select", "ns/op", "")
	out.key, out.floor = "registry-8-lookup", r.row(b, "", "Lookup/floor", "ns/op", "").wall
	out.goals = []goal{wallGoal(out, time.Millisecond, "wall")}
	return out
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// TestTheTestsOfTheRegistryGoalsExist finds the tests in the sources, so that a renamed test does not leave the table.
func TestTheTestsOfTheRegistryGoalsExist(t *testing.T) {
	for _, r := range registryRequirements() {
		files, err := filepath.Glob(filepath.Join(root, r.pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var sources strings.Builder
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(text)
		}
		for _, name := range r.tests {
			name, _, _ = strings.Cut(name, "/")
			if !regexp.MustCompile(`(?m)^func ` + name + `\(`).MatchString(sources.String()) {
				t.Errorf("%s: %s has no test %s", r.key, r.pkg, name)
			}
		}
		for _, n := range r.numbers {
			test, attribute, _ := strings.Cut(n.attribute, "/")
			if !strings.Contains(strings.Join(r.tests, " "), test) ||
				!strings.Contains(sources.String(), `t.Attr("`+attribute+`"`) {
				t.Errorf("%s: no test of %s states %s", r.key, r.pkg, n.attribute)
			}
		}
	}
}
