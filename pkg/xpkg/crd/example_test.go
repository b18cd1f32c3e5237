package crd_test

import (
	"encoding/json"
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/crd"
)

const old = `{
  "apiVersion": "apiextensions.k8s.io/v1beta1",
  "kind": "CustomResourceDefinition",
  "metadata": {"name": "buckets.acme.example.org"},
  "spec": {
    "group": "acme.example.org", "version": "v1", "scope": "Cluster",
    "names": {"kind": "Bucket", "listKind": "BucketList", "plural": "buckets", "singular": "bucket"}
  }
}`

func ExampleFromV1Beta1() {
	converted, err := crd.FromV1Beta1([]byte(old))
	if err != nil {
		fmt.Println(err)
		return
	}
	var object struct {
		APIVersion string
		Spec       struct {
			Versions []struct {
				Name            string
				Served, Storage bool
			}
		}
	}
	if err := json.Unmarshal(converted, &object); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(object.APIVersion, object.Spec.Versions)
	// Output: apiextensions.k8s.io/v1 [{v1 true true}]
}
