# Statistics of the columns of a table, with missing values.
import numpy as np

rows, columns = 1000, 4
i = np.arange(rows * columns).reshape(rows, columns)
table = np.sin(i * 0.37) * np.array([1, 2, 5, 10]) + np.array([0, 100, -5, 7])
table[:, 2] += 0.8 * table[:, 1]
table[5::50, 3] = np.nan

valid = ~np.isnan(table)
count = valid.sum(axis=0)
mean = np.where(valid, table, 0).sum(axis=0) / count
filled = np.where(valid, table, mean)
deviation = np.sqrt(((filled - mean) ** 2).sum(axis=0) / (count - 1))
low, high = filled.min(axis=0), filled.max(axis=0)
median = np.sort(filled, axis=0)[rows // 2]

z = (filled - mean) / deviation
correlation = z.T @ z / (rows - 1)
outliers = np.count_nonzero(np.abs(z) > 1.4)

print("count", count)
print("mean", mean)
print("deviation", deviation)
print("median", median)
print("range", low, high)
print("correlation", correlation)
print("outliers", outliers)
