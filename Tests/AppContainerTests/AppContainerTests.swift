// AppContainerTests
