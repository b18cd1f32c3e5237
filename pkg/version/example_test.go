package version_test

import (
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/version"
)

func ExampleConstraint_Filter() {
	c := version.ParseConstraint(">=v1.1.0, <v2")
	fmt.Println(c.Filter([]string{"latest", "v1.0.0", "v1.2.0-rc.1", "v1.10.0", "v1.2.0", "v2.0.0"}))
	// Output: [v1.10.0 v1.2.0]
}

func ExampleCheckConstraint() {
	err := version.CheckConstraint(">=v1.0.0, latest", true)
	fmt.Println(err)
	// Output: ">=v1.0.0, latest" is not a version constraint: "latest" is not a version at character 11
}
