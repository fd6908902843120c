module socketload

go 1.24.0
