package sorting

import (
	"math/rand/v2"
	"slices"
	"testing"
)

var algorithms = map[string]func([]int) []int{"merge": Merge[int], "quick": Quick[int]}

// Both algorithms sort as Go's own library does, and leave what they were given as it was.
func TestSorted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	cases := [][]int{nil, {1}, {2, 1}, {1, 1, 1, 1}, Fixed}
	for length := range 200 {
		values := make([]int, length)
		for place := range values {
			values[place] = random.IntN(50) - 25
		}
		cases = append(cases, values, slices.Sorted(slices.Values(values)))
	}
	for name, algorithm := range algorithms {
		for _, values := range cases {
			before := slices.Clone(values)
			if want, got := slices.Sorted(slices.Values(values)), algorithm(values); !slices.Equal(got, want) {
				t.Fatalf("%s of %v: got %v, want %v", name, values, got, want)
			}
			if !slices.Equal(values, before) {
				t.Fatalf("%s changed what it was given", name)
			}
		}
	}
}

// An array that is sorted already, or all alike, takes quick sort no longer than another.
func TestNoBadCase(t *testing.T) {
	values := make([]int, 1_000_000) // by the square of it, this would take minutes
	for name, algorithm := range algorithms {
		for step := range 2 {
			for place := range values {
				values[place] = place * step
			}
			if !slices.IsSorted(algorithm(values)) {
				t.Fatalf("%s: not sorted", name)
			}
		}
	}
}
