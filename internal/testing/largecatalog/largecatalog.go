// Package largecatalog makes catalogs of many packages, with a distribution of words as in real packages.
package largecatalog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

var (
	services = []string{
		"s3", "ec2", "rds", "iam", "sql", "storage", "network", "compute", "dns", "kafka", "redis", "monitor", "cdn", "vault",
		"queue",
	}
	nouns = []string{
		"Bucket", "Instance", "Policy", "Role", "Cluster", "Network", "Subnet", "Database", "User", "Group", "Topic", "Queue",
		"Key", "Rule", "Zone", "Record",
	}
)

// Facts returns the facts of a package in the organisation acme with kinds KIND.GROUP.
func Facts(repository, typ string, kinds ...string) catalog.Facts {
	f := catalog.Facts{
		Repository: "registry.example.org/acme/" + repository, Version: catalog.Version{Tag: "v1.0.0", Kinds: len(kinds)},
		Head: &catalog.Head{Package: catalog.Package{Repository: "registry.example.org/acme/" + repository, Type: typ}},
	}
	for _, name := range kinds {
		kind, group, _ := strings.Cut(name, ".")
		f.Head.Kinds = append(f.Head.Kinds, catalog.Kind{
			Kind: kind, Group: group, Plural: strings.ToLower(kind) + "s", Singular: strings.ToLower(kind), Scope: "Cluster",
			Served: []string{"v1"},
			Role:   catalog.Provides, Repository: f.Repository,
		})
		f.Served = append(f.Served, catalog.ServedKind{Group: group, Kind: kind, Versions: []string{"v1"}})
	}
	slices.SortFunc(f.Served, func(a, b catalog.ServedKind) int {
		return strings.Compare(a.Group+"\x00"+a.Kind, b.Group+"\x00"+b.Kind)
	})
	return f
}

// Build returns a catalog of a number of packages with 200 kinds each.
func Build(t testing.TB, packages int) *catalog.Catalog {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // The numbers only have to be the same in every run.
	var all []catalog.Facts
	for i := range packages {
		var kinds []string
		for j := range 200 {
			kind := nouns[random.IntN(len(nouns))] + nouns[random.IntN(len(nouns))] + nouns[j%len(nouns)]
			kinds = append(
				kinds, fmt.Sprintf("%s%d.%s.cloud%d.example.org", kind, j/len(nouns), services[random.IntN(len(services))], i),
			)
		}
		all = append(all, Facts(fmt.Sprintf("provider-cloud%d-%s", i, services[i%len(services)]), "Provider", kinds...))
	}
	c, err := catalog.Build(catalog.Config{Name: "test"}, all)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}
