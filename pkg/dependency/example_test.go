package dependency_test

import (
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

func ExampleGraph() {
	var g dependency.Graph
	g.Add("platform", dependency.Dependency{Package: "network", Constraint: ">=v1.0.0"}, dependency.Dependency{
		Package: "database",
	})
	g.Add("network", dependency.Dependency{Package: "provider"})
	g.Add("database", dependency.Dependency{Package: "provider", Constraint: "<v2"})
	g.Add("provider")
	g.Add("unused")

	fmt.Println("order:", g.Order())
	for _, by := range g.Dependents("provider") {
		fmt.Printf("%s requires provider %q\n", by.From, by.Constraint)
	}
	fmt.Println("orphans:", g.Orphans("platform"))
	// Output:
	// order: [provider network database platform unused]
	// network requires provider ""
	// database requires provider "<v2"
	// orphans: [unused]
}
