// ContainerTransactionTests
